// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = Describe("A shrink taken back half way", func() {
	// Every crash point: the wish goes 2 -> 0 -> 2, with so many passes and half passes in between.
	for between := range 6 {
		It("takes no workload machine", func() {
			w := settled(3, 2, Unbounded)
			w.setWish(0)
			for i := range between {
				w.carryOut(NewPlan(w.view))
				if i%2 == 1 {
					w.manage()
				}
			}
			w.setWish(2)
			plan, rested := w.settle()
			Expect(rested).To(BeTrue())
			Expect(w.broken).NotTo(HaveOccurred())
			Expect(plan.Summary).To(And(HaveField("Serving", 3), HaveField("Ready", 2), HaveField("Reason", Complete)))
			Expect(w.evicted).To(BeZero())
			for _, name := range []string{"a", "b", "c"} {
				Expect(w.machine(name).Leaving()).To(BeFalse())
			}
		})
	}

	It("keeps the priority of a victim that may be on its way out (9)", func() {
		w := settled(3, 1, Unbounded)
		w.setWish(0)
		w.carryOut(NewPlan(w.view))
		w.carryOut(NewPlan(w.view))
		Expect(w.view.Applied.Excess).To(BeZero())
		// MCM has seen that A fell, but deleted nothing yet.
		w.view.SetReplicas = 3
		w.setWish(1)
		w.setReplicas(4)
		plan := NewPlan(w.view)
		Expect(plan.Moves).To(BeEmpty())
		Expect(plan.Priorities).To(BeEmpty())
		Expect(plan.Summary.Reason).To(Equal(Refilling))
		w.carryOut(plan)
		w.view.SetReplicas = 5
		plan = NewPlan(w.view)
		Expect(plan.Moves).To(Equal([]Move{{"d", false, Released}}))
		Expect(plan.Priorities).To(Equal([]Priority{{"d", PriorityServing}}))
	})

	It("is applied until the Node of a machine that was created to serve cannot get pods any more (6)", func() {
		w := settled(3, 1, Unbounded)
		d := w.machine("d")
		d.Phase, d.Registered, d.Open, d.Priority, d.SeenPriority = mcm.MachinePending, false, true, PriorityVictim, PriorityVictim
		w.setWish(0)
		plan := NewPlan(w.view)
		Expect(plan.Victims).To(Equal([]Victim{{"d", Shrunk}}))
		Expect(plan.Applied.Excess).To(Equal(1))
		Expect(plan.Summary.Reason).To(Equal(Shrinking))
		d.Open = false
		Expect(NewPlan(w.view).Applied.Excess).To(BeZero())
		d.Open, d.Failing = true, true
		Expect(NewPlan(w.view).Applied.Excess).To(BeZero(), "it may never have a Node (10)")
	})

	It("is applied while a machine that serves has been put into the reserve by the same plan (6)", func() {
		w := settled(3, 1, Unbounded)
		c := w.machine("c")
		c.Pods, c.Priority, c.SeenPriority = 0, PriorityVictim, PriorityVictim
		w.setWish(0)
		w.setReplicas(2)
		w.view.Applied.Excess = 2
		plan := NewPlan(w.view)
		Expect(plan.Moves).To(Equal([]Move{{"c", true, Retired}}))
		Expect(plan.Applied.Excess).To(Equal(2))
		c.Reserve = true
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1))
	})

	It("is applied while a machine that serves would be deleted as soon as the one in reserve, whichever is older (6)", func() {
		w := settled(3, 1, Unbounded)
		victim, served := w.machine("d"), w.machine("c")
		victim.Priority, victim.SeenPriority, victim.Created = PriorityVictim, PriorityVictim, start.Add(-24*time.Hour)
		w.setWish(0)
		Expect(NewPlan(w.view).Applied.Excess).To(BeZero())
		served.SeenPriority = PriorityVictim
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1))
	})

	It("is not applied for a machine that is named, which is deleted before others of its priority (6)", func() {
		w := settled(3, 1, Unbounded)
		d := w.machine("d")
		d.Named, d.Priority, d.SeenPriority = true, PriorityServing, PriorityServing
		w.setWish(0)
		Expect(NewPlan(w.view).Applied.Excess).To(BeZero())
	})

	It("is applied until the machines are there that its MachineSet asks for (6)", func() {
		w := settled(3, 2, Unbounded)
		w.setWish(0)
		w.setReplicas(5)
		w.view.MaxSetReplicas = 7 // MCM has seen R rise, and not yet that A falls
		plan := NewPlan(w.view)
		Expect(plan.Moves).To(HaveLen(2))
		Expect(plan.Applied.Excess).To(Equal(2), "two more are being created, and MCM would delete any two that serve")
		w.view.MaxSetReplicas = 5
		Expect(NewPlan(w.view).Applied.Excess).To(BeZero())
	})
})
