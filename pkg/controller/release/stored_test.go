// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

func stored[T any](c *cluster, kind schema.GroupVersionResource) (all []T) {
	for _, o := range world.List[T](c, kind) {
		all = append(all, *o)
	}
	return all
}

func (c *cluster) pods() []corev1.Pod      { return stored[corev1.Pod](c, podGVR) }
func (c *cluster) nodes() []corev1.Node    { return stored[corev1.Node](c, nodeGVR) }
func (c *cluster) sets() []mcm.MachineSet  { return stored[mcm.MachineSet](c, setGVR) }
func (c *cluster) machines() []mcm.Machine { return stored[mcm.Machine](c, machineGVR) }
func (c *cluster) deployments() []v1alpha1.MachineDeployment {
	return stored[v1alpha1.MachineDeployment](c, deploymentGVR)
}

// replicas are those of all pools, as in "a=2 b=1".
func (c *cluster) replicas() string {
	var words []string
	for _, d := range c.deployments() {
		words = append(words, fmt.Sprintf("%s=%d", d.Name, d.Spec.Replicas))
	}
	return strings.Join(words, " ")
}

// waiting is how many pods have no node.
func (c *cluster) waiting() int {
	n := 0
	for _, p := range c.pods() {
		if p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

// writes are what the controller has written since a number of writes, as "a {...}".
func (c *cluster) writes(since int) []string {
	var all []string
	for _, w := range world.WritesOf(c.World, "release", since) {
		all = append(all, w.Verb+" "+w.Resource+" "+w.Name)
	}
	return all
}

// events are the messages so far.
func (c *cluster) events() (all []string) {
	for _, e := range stored[corev1.Event](c, eventGVR) {
		all = append(all, e.Reason+": "+e.Message)
	}
	return all
}
