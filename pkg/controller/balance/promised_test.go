// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("A promised machine", func() {
	promises := Annotate(v1alpha1.MoveAnnotation, v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"}.String())
	took := Annotate(v1alpha1.MoveAnnotation, v1alpha1.Move{ID: "1", From: "a", Taken: 1}.String())
	off := Mode(v1alpha1.BalanceOff)

	It("goes with no pod that must stay, also when nothing is balanced any more", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 4, off, Applied(4), promises))
			c.deploy(NewMember("b", 3, off, took))
			c.run("p0", "p1", "p2", "p3", "p4", "p5", "p6")
			c.budget(0)
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/3"))
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
			c.budget(1)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.annotations(v1alpha1.MoveAnnotation, "a", "b")).To(Equal("-/-"))
		})
	})

	It("stays where there is no target cluster, and holds up no growth", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 4, off, Applied(4), promises))
			c.deploy(NewMember("b", 3, off, took))
			c.Start("balance", program(false))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/3"))
			c.scale("a", 6)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("6/3"))
			Expect(c.ready(false, "a", "b")).To(Equal("6/3"))
		})
	})
})
