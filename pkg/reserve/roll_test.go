// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// roll is one pass of MCM's rolling update with a surge of one and none unavailable: new machines up to the surge; of
// the old set what is not ready, and then as many as leave the replicas available.
func (w *world) roll() bool {
	shown := pool.VisibleReplicas(w.view.Replicas, w.view.Applied)
	fresh := w.present(func(m Machine) bool { return m.Set == current })
	stale := w.present(func(m Machine) bool { return m.Set == old })
	moved := false
	for i, m := range fresh {
		if i < len(fresh)-shown {
			w.remove(m)
			moved = true
		}
	}
	available := len(w.present(func(m Machine) bool { return m.Ready() && !m.Leaving() }))
	for _, m := range stale {
		if !m.Ready() || available > shown {
			if m.Ready() {
				available--
			}
			w.remove(m)
			moved = true
		}
	}
	present := len(w.present(func(Machine) bool { return true }))
	for range min(shown-len(fresh), shown+w.surge-present) {
		w.create()
		moved = true
	}
	w.view.SetReplicas = len(w.present(func(Machine) bool { return true }))
	if len(stale) == 0 && len(fresh) == shown && available >= shown {
		w.view.Rollout, moved = false, true
	}
	return moved
}

// rollOut changes the template: what is there becomes the old set.
func (w *world) rollOut(surge int) {
	w.view.Rollout, w.surge = true, surge
	for i := range w.view.Machines {
		w.view.Machines[i].Set = old
	}
}

var _ = Describe("A rollout", func() {
	finish := func(w *world) Plan {
		plan, rested := w.settle()
		Expect(rested).To(BeTrue(), "%v", w.log)
		Expect(w.broken).NotTo(HaveOccurred())
		return plan
	}

	DescribeTable("evicts each pod once and keeps the reserve, whatever the surge",
		func(r, x, surge int) {
			w := settled(r, x, Unbounded)
			w.rollOut(surge)
			plan := finish(w)
			Expect(w.evicted).To(Equal(r), "%v", w.log)
			Expect(w.waiting).To(BeZero())
			Expect(plan.Summary).To(And(HaveField("Serving", r), HaveField("Reserve", x), HaveField("Ready", x), HaveField("Reason", Complete)))
		},
		Entry("of one", 6, 2, 1),
		Entry("of two", 6, 2, 2),
		Entry("of all", 3, 2, 5),
		Entry("with more in reserve than at work", 1, 3, 1),
	)

	It("leaves A alone, and the end state is the one asked for in its middle", func() {
		for _, x := range []int{0, 1, 4} {
			w := settled(3, 2, Unbounded)
			w.rollOut(1)
			for range 4 {
				w.pass()
			}
			w.setWish(x)
			Expect(NewPlan(w.view)).To(HaveField("Applied", Applied{Excess: 2, Max: Unbounded}))
			Expect(NewPlan(w.view).Summary.Reason).To(Equal(RollingOut))
			plan := finish(w)
			Expect(plan.Summary).To(And(HaveField("Serving", 3), HaveField("Ready", x)))
			Expect(w.evicted).To(Equal(3))
		}
	})

	It("ends without the reserve machines that cannot be made, though the last old machine is still there", func() {
		w := settled(3, 2, Unbounded)
		w.rollOut(1)
		for w.born < 10 {
			w.pass()
		}
		w.stuck = "j" // The fifth of the new set.
		w.view.BootPatience = 0
		for range 20 {
			w.pass()
		}
		Expect(w.view.Rollout).To(BeTrue())
		w.machine("j").Failing, w.view.BootPatience = true, 1
		for range 10 {
			w.pass()
		}
		Expect(w.view.Rollout).To(BeFalse(), "%v", w.log)
		Expect(w.evicted).To(Equal(3))
		Expect(w.view.Retry.Failures).To(Equal(1))
	})

	It("gives up a machine that cannot be made once, also where fewer may run by now", func() {
		w := settled(3, 2, 7)
		w.rollOut(1)
		m := w.machine("e")
		m.Phase, m.HasProviderID, m.Registered, m.Failing = "CrashLoopBackOff", false, false, true
		m.Priority, m.SeenPriority = PriorityServing, PriorityServing
		w.view.Max, w.view.Excess = 3, 0
		for range 3 {
			plan := NewPlan(w.view)
			Expect(plan.Applied).To(Equal(Applied{Excess: 1, Max: 7}))
			w.carryOut(plan)
		}
	})

	Describe("that begins before MCM has deleted what a smaller A asks for", func() {
		var w *world
		BeforeEach(func() {
			w = settled(3, 2, Unbounded)
			w.rollOut(1)
			w.view.Applied.Excess, w.view.SetReplicas = 1, 4
		})
		victims := func() []Victim { return NewPlan(w.view).Victims }

		It("deletes it from the reserve (6)", func() {
			Expect(NewPlan(w.view)).To(And(
				HaveField("Victims", []Victim{{"e", Shrunk}}),
				HaveField("Priorities", []Priority{{"e", PriorityVictim}}),
				HaveField("Applied.Excess", 1),
			))
			finish(w)
			Expect(w.log).To(ContainElement("e deleted"))
			Expect(w.log).NotTo(ContainElement("e Released"))
			Expect(w.evicted).To(Equal(3))
		})

		It("deletes nothing once that machine is leaving", func() {
			w.machine("d").Deleted = true
			Expect(victims()).To(BeEmpty())
		})

		It("deletes nothing once another machine of the set is leaving in its place", func() {
			w.machine("a").Deleted = true
			w.add(running(false))
			Expect(victims()).To(BeEmpty())
		})

		It("deletes no more than that beside the surge", func() {
			w.add(running(true))
			Expect(victims()).To(Equal([]Victim{{"e", Shrunk}}))
		})

		It("deletes nothing for the surge, which another set asks for", func() {
			w.machine("e").Set = current
			Expect(victims()).To(BeEmpty())
		})

		It("deletes nothing of the reserve that is applied, where R is smaller", func() {
			w.setReplicas(2)
			Expect(victims()).To(Equal([]Victim{{"e", Shrunk}}))
			w.view.Applied.Excess = 2
			Expect(victims()).To(BeEmpty())
		})

		It("deletes none that is preserved", func() {
			w.machine("d").Preserved, w.machine("e").Preserved = true, true
			Expect(victims()).To(BeEmpty())
		})
	})

	It("in place moves pods to ready reserve while a machine is updated, and never marks a busy one", func() {
		w := settled(2, 1, Unbounded)
		w.view.Rollout = true
		m := w.machine("a")
		m.Phase, m.Pods = "InPlaceUpdating", 0
		plan := NewPlan(w.view)
		Expect(plan.Moves).To(Equal([]Move{{"c", false, Swapped}, {"a", true, Swapped}}))
		w.carryOut(plan)
		m = w.machine("a")
		m.Phase = "InPlaceUpdateSuccessful"
		Expect(NewPlan(w.view).Moves).To(BeEmpty())
		m.Phase = "Running"
		plan = NewPlan(w.view)
		Expect(plan.Moves).To(BeEmpty())
		Expect(plan.Priorities).To(Equal([]Priority{{"a", PriorityReserve}}))
	})

	It("in place leaves A alone too, and then shrinks by the reserve", func() {
		w := settled(2, 2, Unbounded)
		w.view.Rollout = true
		w.setWish(1)
		w.machine("d").Phase = "InPlaceUpdating"
		plan := NewPlan(w.view)
		Expect(plan.Applied.Excess).To(Equal(2))
		Expect(plan.Victims).To(BeEmpty())
		w.carryOut(plan)
		w.machine("d").Phase = "Running"
		w.view.Rollout = false
		plan = finish(w)
		Expect(plan.Summary).To(And(HaveField("Serving", 2), HaveField("Ready", 1), HaveField("Reason", Complete)))
		Expect(w.evicted).To(BeZero())
	})

	DescribeTable("in place gives no machine up, however long ago it was created (10)", func(phase mcm.MachinePhase) {
		w := settled(2, 2, Unbounded)
		w.view.Rollout, w.view.Now = true, start.Add(time.Hour)
		w.machine("d").Phase = phase
		plan := NewPlan(w.view)
		Expect(plan.Victims).To(BeEmpty())
		Expect(plan.Summary.Reason).NotTo(Equal(CannotBeMade))
		w.carryOut(plan)
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(2))
	},
		Entry("while it is updated", mcm.MachineInPlaceUpdating),
		Entry("before it runs again", mcm.MachineInPlaceUpdateSuccessful),
	)

	DescribeTable("in place gives up none that cannot be made while a machine that MCM deletes before it is to stay (6)", func(phase mcm.MachinePhase, left int) {
		w := settled(2, 1, Unbounded)
		w.view.Rollout = true
		w.machine("a").Phase, w.machine("a").Pods = phase, 0
		c := w.machine("c")
		c.Phase, c.Failing, c.HasProviderID, c.Priority, c.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, PriorityServing, PriorityServing
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(left))
	},
		Entry("one that is updated", mcm.MachineInPlaceUpdating, 1),
		Entry("one that was updated", mcm.MachineInPlaceUpdateSuccessful, 1),
		Entry("one that could not be updated", mcm.MachineInPlaceUpdateFailed, 1),
		Entry("but not for one that runs", mcm.MachineRunning, 0),
	)

	It("that recreates all gives the first machines to workload", func() {
		w := settled(3, 2, Unbounded)
		for _, m := range w.present(func(Machine) bool { return true }) {
			w.remove(m)
		}
		plan := finish(w)
		Expect(plan.Summary).To(And(HaveField("Serving", 3), HaveField("Ready", 2)))
		Expect(w.log).To(ContainElements("f born, serves true", "h born, serves true", "i born, serves false"))
		Expect(w.log).NotTo(ContainElement(ContainSubstring("Released")))

		for _, m := range w.present(func(Machine) bool { return true }) {
			w.remove(m)
		}
		w.view.Rollout = true
		w.setWish(1)
		Expect(NewPlan(w.view).AtRest(w.view)).To(BeTrue())
		w.view.Rollout = false
		Expect(finish(w).Summary).To(And(HaveField("Serving", 3), HaveField("Ready", 1)))
	})
})
