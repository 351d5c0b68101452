// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// deployUndescribed makes a MachineDeployment whose MachineClass does not describe its machines.
func (c *cluster) deployUndescribed(m plan.Member) {
	GinkgoHelper()
	c.deploy(m)
	world.Patch(c.ours.MachineV1alpha1().MachineClasses(ns), m.Object.Name, `{"nodeTemplate":null}`)
}

var _ = Describe("Until Nodes show what a machine offers", func() {
	It("an excess in resources is known a minute after the process starts, though nothing else happens", func() {
		play(func(c *cluster) {
			c.deployUndescribed(NewMember("a", 1, Excess("cpu=4")))
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			c.settle()
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("True Spread"))
		})
	})

	It("an excess in a device is known once a Node offers the device, though nothing else happens", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 1, Labelled("p"), Excess("example.org/device=2")))
			c.Start("balance", controller())
			c.settle()
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("False ExcessUnknown"))
			nodes, err := c.core.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			for _, n := range nodes.Items {
				_, err := c.core.CoreV1().Nodes().Patch(context.Background(), n.Name, types.MergePatchType, []byte(`{"status":{"allocatable":{"example.org/device":"1"}}}`), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
			}
			time.Sleep(time.Minute)
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("True Spread"))
			Expect(c.annotations(v1alpha1.ShareAnnotation, "a")).To(Equal("2"))
		})
	})

	It("shares of similar MachineDeployments stay where they are when the process starts again", func() {
		play(func(c *cluster) {
			c.deployUndescribed(NewMember("a", 2, Excess("3")))
			c.deployUndescribed(NewMember("b", 2))
			c.deployUndescribed(NewMember("c", 2))
			balance := c.Start("balance", controller())
			time.Sleep(10 * time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("1/1/1"))
			before := len(c.Writes())
			balance.Crash()
			balance.Restart()
			time.Sleep(10 * time.Minute)
			Expect(c.wrote(before)).To(BeZero())
		})
	})

	It("growth waits when the process starts again, and is split then", func() {
		play(func(c *cluster) {
			for _, name := range abc {
				c.deployUndescribed(NewMember(name, 2, ScaleUp))
			}
			balance := c.Start("balance", controller())
			time.Sleep(10 * time.Minute)
			balance.Crash()
			c.scale("a", 8)
			balance.Restart()
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
		})
	})

	It("a machine that is created for a move is not given up when the process starts again", func() {
		play(func(c *cluster) {
			c.deployUndescribed(NewMember("a", 3, Continuous))
			c.deployUndescribed(NewMember("b", 1, Continuous))
			balance := c.Start("balance", controller())
			time.Sleep(70 * time.Second)
			move := c.annotations(v1alpha1.MoveAnnotation, "b")
			Expect(move).To(ContainSubstring(`"from":"a"`))
			balance.Crash()
			balance.Restart()
			time.Sleep(10 * time.Second)
			Expect(c.annotations(v1alpha1.MoveAnnotation, "b")).To(Equal(move))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
		})
	})

	It("shares of an excess in resources stay as they are when the process starts again, though MachineClasses describe larger machines", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("cpu=12")}, 2, 2, 2)
			for _, name := range abc {
				world.Patch(c.ours.MachineV1alpha1().MachineClasses(ns), name, `{"nodeTemplate":{"capacity":{"cpu":"6"}}}`)
			}
			balance := c.Start("balance", controller())
			time.Sleep(10 * time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("1/1/1"))
			before := len(c.Writes())
			balance.Crash()
			balance.Restart()
			time.Sleep(10 * time.Minute)
			Expect(c.wrote(before)).To(BeZero())
		})
	})
})
