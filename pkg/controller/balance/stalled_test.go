// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
)

var _ = Describe("A promised machine", func() {
	const toB, fromA = `{"id":"1","to":{"b":1},"machine":"a-0"}`, `{"id":"1","from":"a","taken":1}`
	promises := annotate(v1alpha1.MoveAnnotation, toB)
	took := annotate(v1alpha1.MoveAnnotation, fromA)
	off := mode(v1alpha1.BalanceOff)
	deleted := func(m *Member) { m.Object.DeletionTimestamp = &metav1.Time{Time: noon} }
	// pinned has a pod on each machine that must not be evicted.
	pinned := func(m *Member) {
		for i := range m.Machines {
			name := m.Machines[i].Object.Name
			hold(&m.Machines[i], pod("p-"+name, name, safe("false")))
		}
	}
	asked := func(n int32) change { return func(m *Member) { m.Object.Spec.Replicas = n } }

	DescribeTable("that cannot go", func(want string, members ...Member) {
		w := newWorld(members...)
		Expect(writes(NewPlan(w.View))).To(Equal(want))
		w.carry()
		w.settle()
		Expect(writes(NewPlan(w.View))).To(BeEmpty())
	},
		Entry("since its owner scaled to 0, ends the move",
			"a: applied-replicas=0 -move",
			member("a", 4, continuous, applied(4), promises, asked(0)), member("b", 3, continuous, applied(3), took)),
		Entry("since its owner scaled to 0 before its replica arrived, takes the promise back",
			"a: applied-replicas=0 -move",
			member("a", 4, scaleUp, applied(4), promises, asked(0)), member("b", 2, scaleUp, applied(2))),
		Entry("holds up no growth of the member that took its replica and is not balanced any more",
			"b: applied-replicas=5",
			member("a", 4, continuous, applied(4), rollout, promises), member("b", 5, off, applied(3), took)),
		Entry("holds up no growth of a member that is not balanced any more",
			"a: applied-replicas=6",
			member("a", 4, off, applied(4), promises, asked(6), pinned), member("b", 3, off, took)),
		Entry("holds up no growth in the group that took its replica",
			"b: applied-replicas=5",
			member("a", 4, off, applied(4), promises, pinned), member("b", 3, scaleUp, applied(3), took, asked(5)), member("c", 3, scaleUp, applied(3))),
		Entry("since its MachineDeployment is being deleted, holds up no growth in its group",
			"b: applied-replicas=5",
			member("a", 4, scaleUp, applied(4), deleted, promises), member("b", 5, scaleUp, applied(3))),
		Entry("is given nothing by others",
			"c: -move",
			member("a", 4, scaleUp, applied(4), promises, pinned), member("b", 3, scaleUp, applied(3), took),
			member("c", 2, scaleUp, applied(2), asked(3), annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"a":1}}`))),
		Entry("is given nothing by others that come before it",
			"a: -move",
			member("a", 2, scaleUp, applied(2), asked(3), annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"c":1}}`)),
			member("b", 3, scaleUp, applied(3), annotate(v1alpha1.MoveAnnotation, `{"id":"1","from":"c","taken":1}`)),
			member("c", 4, scaleUp, applied(4), annotate(v1alpha1.MoveAnnotation, `{"id":"1","to":{"b":1},"machine":"c-0"}`), pinned)),
		Entry("has its taker given nothing by others",
			"c: -move",
			member("a", 4, scaleUp, applied(4), promises, pinned), member("b", 3, scaleUp, applied(3), took),
			member("c", 2, scaleUp, applied(2), asked(3), annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"b":1}}`))),
		Entry("holds up no growth where nothing is made in its place",
			"a: applied-replicas=6",
			member("a", 4, scaleUp, applied(4), promises, asked(6)), member("b", 3, scaleUp, applied(3), took, stuck(1))),
		Entry("holds up no growth where the taker is frozen",
			"a: applied-replicas=6",
			member("a", 4, scaleUp, applied(4), promises, asked(6)), member("b", 3, scaleUp, applied(3), took, stuckBoot, frozen)),
		Entry("holds up no growth where the taker is updated",
			"a: applied-replicas=6",
			member("a", 4, scaleUp, applied(4), promises, asked(6)), member("b", 3, scaleUp, applied(3), took, stuckBoot, rollout)),
		Entry("since its MachineDeployment is being deleted, leaves what arrived where it is",
			"b: -move",
			member("a", 4, scaleUp, applied(4), promises, deleted), member("b", 3, scaleUp, applied(3), took)),
	)

	It("holds up no growth while the target cluster does not answer", func() {
		v := view(member("a", 4, off, applied(4), promises, asked(6)), member("b", 3, off, took))
		v.Unreachable = "silent"
		p := NewPlan(v)
		Expect(writes(p)).To(Equal("a: applied-replicas=6"))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
	})

	It("goes though growth is asked for where its replica arrived", func() {
		w := newWorld(member("a", 4, continuous, applied(4), promises), member("b", 3, continuous, applied(3), took, asked(5)))
		Expect(writes(NewPlan(w.View))).To(Equal("a: r=3 applied-replicas=3 -move gone=a-0"))
		w.rest()
		Expect(w.replicas()).To(Equal("4/4"))
	})

	It("goes with no pod that must stay, also when nothing is balanced any more", func() {
		play(func(c *cluster) {
			c.deploy(member("a", 4, off, applied(4), promises))
			c.deploy(member("b", 3, off, took))
			c.run("p0", "p1", "p2", "p3", "p4", "p5", "p6")
			c.budget(0)
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/3"))
			Expect(c.condition("a", ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
			c.budget(1)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.annotations(v1alpha1.MoveAnnotation, "a", "b")).To(Equal("-/-"))
		})
	})

	It("stays where there is no target cluster, and holds up no growth", func() {
		play(func(c *cluster) {
			c.deploy(member("a", 4, off, applied(4), promises))
			c.deploy(member("b", 3, off, took))
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
