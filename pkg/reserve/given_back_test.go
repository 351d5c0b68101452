// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = Describe("R is given back (12)", func() {
	lowered := func(w *world) Plan {
		named("e")(w)
		return NewPlan(w.view)
	}

	It("to whoever named a reserve machine and lowered R for it", func() {
		plan := lowered(settled(3, 2, Unbounded))
		Expect(plan.Replicas).To(Equal(3))
		Expect(plan.Returned).To(Equal([]string{"e"}))
		Expect(plan.Summary.Reason).To(Equal(RestoringReplicas))
	})
	It("also for a machine that is gone by then, as often as one was named", func() {
		w := settled(3, 2, Unbounded)
		w.setReplicas(1)
		w.view.NamedGone = 1
		Expect(NewPlan(w.view)).To(And(HaveField("Replicas", 2), HaveField("Returned", BeEmpty())))
		named("e")(w)
		w.setReplicas(1)
		w.machine("e").Named = true
		Expect(NewPlan(w.view)).To(And(HaveField("Replicas", 3), HaveField("Returned", HaveLen(1))))
		w.view.NamedGone = 9
		Expect(NewPlan(w.view)).To(HaveField("Replicas", 3), "no more than run")
	})
	DescribeTable("also while a machine has not left the reserve whose release has begun", func(change func(*Machine), replicas int) {
		w := settled(2, 3, Unbounded)
		w.setReplicas(3)
		w.view.NamedGone = 1
		change(w.machine("c"))
		Expect(lowered(w).Replicas).To(Equal(replicas))
	},
		Entry("once", func(m *Machine) { m.Open = true }, 3),
		Entry("but not while it boots", func(m *Machine) { m.Open, m.Phase = true, mcm.MachinePending }, 2),
		Entry("but not again once pods run on it", func(m *Machine) { m.Open, m.Reserve = true, false }, 3),
	)
	It("not to whoever lowered nothing", func() {
		w := settled(3, 2, Unbounded)
		w.machine("e").Named = true
		Expect(NewPlan(w.view)).To(And(HaveField("Replicas", 3), HaveField("Returned", BeEmpty())))
	})
	It("once: when R falls again for other reasons, the machine that is still leaving changes nothing", func() {
		w := settled(3, 2, Unbounded)
		w.carryOut(lowered(w))
		w.setReplicas(2)
		Expect(NewPlan(w.view)).To(And(HaveField("Replicas", 2), HaveField("Returned", BeEmpty())))
	})
	It("and X gives way to it at the cap in the same write", func() {
		w := settled(3, 1, 4)
		w.setWish(2)
		w.machine("d").Named = true
		w.setReplicas(2)
		plan := NewPlan(w.view)
		Expect(plan.Replicas).To(Equal(3))
		Expect(plan.Applied).To(Equal(Applied{Excess: 1, Max: 4}))
		Expect(plan.Summary.Message).To(ContainSubstring("of 1 in reserve"))
	})
})
