// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"encoding/json"
	"fmt"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

func decoded[T any](all []T, raw map[string]any) []T {
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, object); err != nil {
		panic(err) // it was written by a typed client
	}
	return append(all, *object)
}

func (c *cluster) pods() (all []corev1.Pod) {
	for _, o := range c.Objects(podGVR) {
		all = decoded(all, o.Object)
	}
	return all
}

func (c *cluster) machines() (all []mcm.Machine) {
	for _, o := range c.Objects(machineGVR) {
		all = decoded(all, o.Object)
	}
	return all
}

func (c *cluster) deployments() (all []v1alpha1.MachineDeployment) {
	for _, o := range c.Objects(deploymentGVR) {
		all = decoded(all, o.Object)
	}
	return all
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
	for _, w := range c.Writes()[since:] {
		if w.User == "release" && w.Resource != "events" && w.Resource != "leases" {
			all = append(all, w.Verb+" "+w.Resource+" "+w.Name)
		}
	}
	return all
}

// events are the messages so far.
func (c *cluster) events() (all []string) {
	for _, o := range c.Objects(eventGVR) {
		raw, _ := json.Marshal(o.Object)
		var e corev1.Event
		_ = json.Unmarshal(raw, &e)
		all = append(all, e.Reason+": "+e.Message)
	}
	return all
}
