// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// step is something that happens to a world at rest, what follows from it in order, and what it comes to: machines
// that serve, and ready ones in reserve.
type step struct {
	what           string
	do             func(*world)
	follows        string
	serving, ready int
	reason         Reason
}

func story(w *world, steps ...step) {
	GinkgoHelper()
	for _, s := range steps {
		w.log = nil
		s.do(w)
		plan, rested := w.settle()
		Expect(w.broken).NotTo(HaveOccurred(), s.what)
		Expect(rested).To(BeTrue(), "%s: %v", s.what, w.log)
		Expect(strings.Join(w.log, ", ")).To(Equal(s.follows), s.what)
		Expect(plan.Summary).To(And(HaveField("Serving", s.serving), HaveField("Ready", s.ready), HaveField("Reason", s.reason)), s.what)
	}
}

func replicas(r int) func(*world) { return func(w *world) { w.setReplicas(r) } }

func wish(x int) func(*world) { return func(w *world) { w.setWish(x) } }

// named lowers R by one and names a machine for it, as cluster-autoscaler does.
func named(name string) func(*world) {
	return func(w *world) {
		w.setReplicas(w.view.Replicas - 1)
		m := w.machine(name)
		m.Named, m.Priority, m.SeenPriority = true, 1, 1
	}
}

func phase(name string, phase mcm.MachinePhase) func(*world) {
	return func(w *world) { w.machine(name).Phase = phase }
}

func cordoned(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Cordoned = true
		}
	}
}

func born(name string, at time.Time) func(*world) {
	return func(w *world) { w.machine(name).Created = at }
}

// busy machines run a pod each.
func busy(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pods = 1
		}
	}
}

func empty(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pods = 0
		}
	}
}

func pinned(why string, names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pinned = why
		}
	}
}

// all does several things at once.
func all(things ...func(*world)) func(*world) {
	return func(w *world) {
		for _, do := range things {
			do(w)
		}
	}
}

// passes lets that many passes go by.
func passes(n int) func(*world) {
	return func(w *world) {
		for range n {
			w.pass()
		}
	}
}

var _ = DescribeTable("Stories", story,
	Entry("from nothing: workload is served first, the newest are the reserve (1)", newWorld(3, 2, 0, Unbounded),
		step{"begin", func(*world) {}, "A 0 -> 2, a born, serves true, b born, serves true, c born, serves true, d born, serves false, e born, serves false", 3, 2, Complete}),
	Entry("growth on a busy pool marks no machine of it (4, 8)", settled(3, 0, Unbounded),
		step{"X 0 -> 2", wish(2), "A 0 -> 2, d born, serves false, e born, serves false", 3, 2, Complete}),
	Entry("scale-up: released before the new one exists, the oldest first (2)", settled(3, 2, Unbounded),
		step{"R 3 -> 4", replicas(4), "d Released, f born, serves false", 4, 2, Complete},
		step{"R 4 -> 7", replicas(7), "e Released, f Released, g born, serves true, h born, serves false, i born, serves false", 7, 2, Complete}),
	Entry("scale-up while the reserve boots: it serves as soon as it may be written to", settled(3, 0, Unbounded),
		step{"X 0 -> 1, R 3 -> 4 at once", all(wish(1), passes(1), replicas(4)), "A 0 -> 1, d born, serves false, d Released, e born, serves false", 4, 1, Complete}),
	Entry("hot spare: a machine fails and is replaced (2)", settled(3, 2, Unbounded),
		step{"b is Unknown", phase("b", mcm.MachineUnknown), "d Released, b deleted, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: a machine fails and comes back, and another one is empty (2, 4)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.machine("d").Pods = 1 }, empty("a"), phase("b", mcm.MachineRunning)), "a Retired", 3, 2, Complete}),
	Entry("hot spare: it comes back, and patience ends: the emptiest goes (5)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.machine("a").Pods, w.machine("b").Pods, w.machine("d").Pods = 2, 3, 1 }, phase("b", mcm.MachineRunning)),
			"A 2 -> 1, d deleted, A 1 -> 2, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: it comes back, and patience ends: the emptiest goes whose pods may be evicted, or none until one may (5)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back, and all are pinned", all(func(w *world) { w.machine("a").Pods, w.machine("b").Pods, w.machine("d").Pods = 2, 3, 1 },
			pinned(pin, "a", "b", "c", "d"), phase("b", mcm.MachineRunning)), "", 4, 1, SurplusServing},
		step{"b and a may be moved", pinned("", "b", "a"), "A 2 -> 1, a deleted, A 1 -> 2, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: it comes back while too many Nodes are not ready, and another one is empty (4)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.view.Unhealthy = true; w.machine("d").Pods = 1 }, empty("a"), phase("b", mcm.MachineRunning)), "a Retired", 3, 2, Complete}),
	Entry("named: exactly that one goes, also at the cap, which is refilled when it is gone (8)", settled(5, 2, 5),
		step{"R 5 -> 4, b", named("b"), "b deleted, A 0 -> 1, f born, serves false", 4, 1, AtMax},
		step{"R 4 -> 3, a", named("a"), "a deleted, A 1 -> 2, g born, serves false", 3, 2, Complete}),
	Entry("named: a reserve machine goes, and gives R back (12)", settled(3, 2, Unbounded),
		step{"R 3 -> 2, e", named("e"), "e gives R back, e deleted, f born, serves false", 3, 2, Complete}),
	Entry("unnamed: a serving machine goes (11)", settled(4, 2, Unbounded),
		step{"R 4 -> 3", replicas(3), "a deleted", 3, 2, Complete}),
	Entry("unnamed, while the reserve boots: that goes, and no busy machine with it; whoever is empty is the reserve then (11, 4)", settled(3, 0, Unbounded),
		step{"X 0 -> 1, R 3 -> 2 a moment later", all(wish(1), passes(1), replicas(2), empty("c")), "A 0 -> 1, d born, serves false, d deleted, c Retired", 2, 1, Complete}),
	Entry("shrink: exactly the reserve goes (6)", settled(3, 2, Unbounded),
		step{"X 2 -> 1", wish(1), "A 2 -> 1, e deleted", 3, 1, Complete},
		step{"X 1 -> 0", wish(0), "A 1 -> 0, d deleted", 3, 0, NotWanted}),
	Entry("shrink and scale-down together take reserve and the machine named (6, 12)", settled(3, 2, Unbounded),
		step{"R 3 -> 2, a; X 2 -> 1", all(named("a"), wish(1)), "a deleted, A 2 -> 1, e deleted", 2, 1, Complete}),
	Entry("the cap: excess gives way to replicas (8)", settled(3, 2, 5),
		step{"R 3 -> 4", replicas(4), "d Released, A 2 -> 1", 4, 1, AtMax},
		step{"R 4 -> 5", replicas(5), "e Released, A 1 -> 0", 5, 0, AtMax},
		step{"R 5 -> 7: above max is honoured", replicas(7), "f born, serves true, g born, serves true", 7, 0, AboveMax}),
	Entry("max lowered: a reserve machine goes, through the gate (6)", settled(3, 2, 5),
		step{"max 5 -> 4", func(w *world) { w.view.Max = 4; w.setReplicas(3) }, "A 2 -> 1, e deleted", 3, 1, AtMax}),
	Entry("R = 0: a warm reserve, or nothing", settled(0, 2, Unbounded),
		step{"R 0 -> 1", replicas(1), "a Released, c born, serves false", 1, 2, Complete},
		step{"R 1 -> 0", replicas(0), "a deleted", 0, 2, Complete},
		step{"X 2 -> 0", wish(0), "A 2 -> 0, b deleted, c deleted", 0, 0, NotWanted}),
	Entry("a preserved reserve machine stays, and A with it (7)", settled(2, 2, Unbounded),
		step{"X 2 -> 0", all(func(w *world) { w.machine("d").Preserved = true }, wish(0)), "A 2 -> 1, c deleted", 2, 1, Protected},
		step{"preserved no more", func(w *world) { w.machine("d").Preserved = false }, "A 1 -> 0, d deleted", 2, 0, NotWanted}),
	Entry("a preserved machine that failed holds a place, and the condition says so", settled(2, 1, Unbounded),
		step{"b fails", func(w *world) { w.machine("b").Preserved = true; w.machine("b").Phase = mcm.MachineFailed }, "c Released", 2, 0, Unhealthy}),
	Entry("someone's own priority: the machine that would go first blocks the gate (6)", settled(2, 1, Unbounded),
		step{"X 1 -> 0", all(func(w *world) { w.machine("a").Priority, w.machine("a").SeenPriority = 1, 1 }, wish(0)), "", 2, 1, ServingDeletedFirst}),
	Entry("a stale mark beyond A: the reserve goes, not the workload (6)", settled(2, 2, Unbounded),
		step{"A is lost", func(w *world) { w.view.Applied.Excess = 0 }, "A 0 -> 2", 2, 2, Complete}),
	Entry("R falls without a name under a preserved reserve machine", settled(2, 1, Unbounded),
		step{"R 2 -> 1", all(func(w *world) { w.machine("c").Preserved = true }, replicas(1)), "a deleted", 1, 1, Complete}),
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
