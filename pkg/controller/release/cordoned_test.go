// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = DescribeTable("A machine in reserve does not keep those behind it from pods that wait",
	func(kind types.PatchType, patch string) {
		playKept(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.settle()
			_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "a-002", kind, []byte(patch), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.events()).To(ConsistOf(HaveSuffix("to release machine a-003")))
		})
	},
	Entry("where its Node is cordoned", types.MergePatchType, `{"spec":{"unschedulable":true}}`),
	Entry("where its Node has a taint of its own", types.JSONPatchType, `[{"op":"add","path":"/spec/taints/-","value":{"key":"maintenance","effect":"NoSchedule"}}]`),
)

var _ = It("A machine in reserve on which pods run that tolerate the taint does not keep those behind it from pods that wait", func() {
	playKept(func(c *cluster) {
		c.grow("a", 1, 2, "1:10")
		c.agent("a-002", 3000)
		c.settle()
		c.Start("release", controller(usual))
		c.create(fresh(1, "p", 4000)...)
		c.settle()
		Expect(c.waiting()).To(BeZero())
		Expect(c.replicas()).To(Equal("a=2"))
		Expect(c.events()).To(ConsistOf(HaveSuffix("to release machine a-003")))
	})
})

var _ = It("A machine in reserve that cannot be created does not keep pods from those of another pool, though replicas ask for it", func() {
	playKept(func(c *cluster) {
		c.grow("a", 1, 1, "1:10")
		c.grow("b", 1, 1, "1:10")
		c.settle()
		c.set(func() { c.boot = 24 * time.Hour })
		c.Start("release", controller(usual))
		c.create(fresh(1, "p", 4000, InZone("a"))...)
		time.Sleep(time.Second)
		c.patch("a", `{"spec":{"replicas":3}}`) // as an autoscaler does, while the reserve is refilled
		time.Sleep(time.Second)
		c.fail()
		time.Sleep(time.Second)
		c.create(fresh(1, "q", 4000)...)
		time.Sleep(time.Second)
		Expect(c.replicas()).To(Equal("a=3 b=2"))
	})
})

// playKept runs body on a cluster whose reserve is kept as the machine-taint controller plans it.
func playKept(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := inhabit(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
		defer c.End()
		c.Latency(time.Millisecond)
		body(c)
	})
}

// fail has the cloud create none of the machines that boot.
func (c *cluster) fail() {
	GinkgoHelper()
	for _, m := range c.machines() {
		if m.Spec.ProviderID == "" {
			m.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
			m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
			_, err := c.ours.MachineV1alpha1().Machines(ns).UpdateStatus(context.Background(), &m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}
}
