// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

func (c *cluster) deployment() *api.MachineDeployment {
	GinkgoHelper()
	return world.Stored[api.MachineDeployment](c, deploymentsGVR, ns, "pool")
}

func (c *cluster) machines() []*mcmapi.Machine { return world.List[mcmapi.Machine](c, machinesGVR) }

func (c *cluster) node(name string) *corev1.Node {
	if o := c.Get(nodesGVR, "", name); o != nil {
		return world.Decoded[corev1.Node](o.Object)
	}
	return nil
}

func marked(m *mcmapi.Machine) bool { return m.Annotations[api.ReserveAnnotation] != "" }

// names of the machines that serve and of those in reserve. Every part of every mark is where it belongs.
func (c *cluster) names() (serving, reserve []string) {
	GinkgoHelper()
	for _, m := range c.machines() {
		Expect(tainted(m.Spec.NodeTemplateSpec.Spec.Taints)).To(Equal(marked(m)), "template of "+m.Name)
		if node := c.node(m.Name); node != nil {
			Expect(tainted(node.Spec.Taints)).To(Equal(marked(m)), "taint of "+m.Name)
			Expect(node.Annotations[api.ReserveAnnotation] != "").To(Equal(marked(m)), "annotation of "+m.Name)
			Expect(node.Annotations[api.ScaleDownDisabledAnnotation] == "true").To(Equal(marked(m)), "scale-down of %s: %v", m.Name, node.Annotations)
			expectState(m)
		}
		if marked(m) {
			reserve = append(reserve, m.Name)
		} else {
			serving = append(serving, m.Name)
		}
	}
	return serving, reserve
}

// expectState compares what a Machine with a Node says of itself with what it is.
func expectState(m *mcmapi.Machine) {
	GinkgoHelper()
	state := m.Annotations[api.ReserveStateAnnotation]
	if !marked(m) {
		// One that was released while it booted had no Node to speak of.
		Expect(state).To(Or(BeEmpty(), MatchRegexp(`^Released at \S+( \(\w+\))?(; node %s does not carry the reserve taint)?$`, m.Name)), "state of "+m.Name)
		return
	}
	mark, err := api.ParseReserve(m.Annotations[api.ReserveAnnotation])
	Expect(err).NotTo(HaveOccurred())
	Expect(state).To(Equal(fmt.Sprintf("Held since %s; node %s carries the reserve taint", mark.Since.Format(time.RFC3339), m.Name)), "state of "+m.Name)
}

func tainted(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == api.ReserveTaintKey })
}

// numbers are S/V as they are, then the status, then the condition.
func (c *cluster) numbers() string {
	GinkgoHelper()
	serving, reserve := c.names()
	d := c.deployment()
	said := ""
	for _, condition := range d.Status.Conditions {
		if condition.Type == api.ReserveReady {
			said = fmt.Sprintf(" %s %s", condition.Status, condition.Reason)
		}
	}
	return fmt.Sprintf("%d+%d status %d/%d%s", len(serving), len(reserve), d.Status.ReadyExcessReplicas, d.Status.ExcessReplicas, said)
}

// written are the writes of the process since a number of writes, without Events and Leases.
func (c *cluster) written(since int) []string {
	var all []string
	for _, w := range world.WritesOf(c.World, evenkeel, since) {
		all = append(all, strings.Join([]string{w.Verb, w.Resource, w.Name, w.Subresource}, " "))
	}
	return all
}

// countMoves counts pods that have to be replaced from now on.
func (c *cluster) countMoves() (moved *int) {
	moved = new(int)
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource == "pods" && w.Verb == "delete" && w.User == "workload" {
			*moved++
		}
		return nil
	})
	return moved
}
