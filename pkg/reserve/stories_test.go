// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"slices"
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

func empty(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pods = 0
		}
	}
}

func pinned(is bool, names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pinned = is
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
	Entry("hot spare: a machine fails and comes back, and somebody is empty (2, 4)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.machine("d").Pods = 1 }, empty("a"), phase("b", mcm.MachineRunning)), "a Retired", 3, 2, Complete}),
	Entry("hot spare: it comes back, and patience ends: the emptiest goes (5)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.machine("a").Pods, w.machine("b").Pods, w.machine("d").Pods = 2, 3, 1 }, phase("b", mcm.MachineRunning)),
			"A 2 -> 1, d deleted, A 1 -> 2, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: it comes back, and patience ends: the emptiest goes whose pods may be evicted, or none until one may (5)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back, and all are pinned", all(func(w *world) { w.machine("a").Pods, w.machine("b").Pods, w.machine("d").Pods = 2, 3, 1 },
			pinned(true, "a", "b", "c", "d"), phase("b", mcm.MachineRunning)), "", 4, 1, SurplusServing},
		step{"b and a may be moved", pinned(false, "b", "a"), "A 2 -> 1, a deleted, A 1 -> 2, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: it comes back while too many Nodes are not ready, and somebody is empty (4)", settled(3, 2, Unbounded),
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

var _ = Describe("Reserve that cannot be made (10)", func() {
	It("is given up, so that repair goes on, and tried again with back-off, one machine first", func() {
		w := settled(3, 0, Unbounded)
		w.outage = true
		w.setWish(3)
		_, rested := w.settle()
		Expect(rested).To(BeTrue())
		Expect(w.view.Applied.Excess).To(BeZero(), "%v", w.log)
		Expect(w.view.Machines).To(HaveLen(3))
		plan := NewPlan(w.view)
		Expect(plan.Summary.Reason).To(Equal(CannotBeMade))
		Expect(plan.Summary.Message).To(HavePrefix("3 of 3 machines serve, 0 of 3 in reserve, 0 of these ready; failures in a row: 1"))
		Expect(plan.Again).To(BeNumerically("~", time.Minute, 10*time.Second))

		w.view.Now = w.view.Now.Add(2 * time.Minute)
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1))
		w.settle()
		Expect(w.view.Retry.Failures).To(Equal(2))
		Expect(w.view.Applied.Excess).To(BeZero())
		Expect(NewPlan(w.view).Again).To(BeNumerically("~", 2*time.Minute, 10*time.Second))

		w.outage = false
		w.view.Now = w.view.Now.Add(time.Hour)
		plan, _ = w.settle()
		Expect(plan.Summary).To(And(HaveField("Ready", 3), HaveField("Reason", Complete)))
		Expect(w.view.Retry).To(BeZero())
		Expect(w.broken).NotTo(HaveOccurred())
	})

	It("is not in the way of a rollout once none is applied, though what is left of it can be made after all", func() {
		w := settled(2, 2, Unbounded)
		w.view.Rollout, w.view.Applied = true, Applied{Max: Unbounded}
		w.view.SetReplicas = 2
		plan := NewPlan(w.view)
		Expect(plan.Victims).To(Equal([]Victim{{"c", Shrunk}, {"d", Shrunk}}))
		Expect(plan.Priorities).To(Equal([]Priority{{"c", PriorityVictim}, {"d", PriorityVictim}}))
		Expect(plan.Moves).To(BeEmpty())
	})

	It("does not become ready in time: it goes, at its deadline", func() {
		w := settled(1, 1, Unbounded)
		w.machine("b").Phase, w.machine("b").Priority, w.machine("b").SeenPriority = mcm.MachinePending, 3, 3
		w.stuck = "b"
		plan := NewPlan(w.view)
		Expect(plan.Again).To(Equal(w.machine("b").Created.Add(w.view.BootPatience).Sub(start)))
		Expect(plan.Summary.Reason).To(Equal(NotReady))
		w.view.Now = w.view.Now.Add(plan.Again)
		plan = NewPlan(w.view)
		Expect(plan.Victims).To(Equal([]Victim{{"b", Unmakeable}}))
		Expect(plan.Priorities).To(Equal([]Priority{{"b", PriorityVictim}}))
		Expect(plan.Applied.Excess).To(Equal(1))
		w.carryOut(plan)
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(0))
	})

	DescribeTable("stays while a machine that serves cannot be made either: that one may be made a moment later, and get pods (6)",
		func(replicas, wish int, reason Reason, reserved ...string) {
			w := settled(2, 1, Unbounded)
			w.setReplicas(replicas)
			w.setWish(wish)
			for _, name := range []string{"b", "c"} {
				m := w.machine(name)
				m.Reserve = slices.Contains(reserved, name)
				if m.Name == "b" || m.Reserve {
					m.Phase, m.Failing, m.HasProviderID, m.Pods = mcm.MachineCrashLoopBackOff, true, false, 0
				}
				m.Priority, m.SeenPriority = PriorityServing, PriorityServing
			}
			w.view.Applied.Excess, w.view.SetReplicas, w.view.MaxSetReplicas = 3-replicas, 3, 3
			plan := NewPlan(w.view)
			Expect(plan.Applied).To(Equal(w.view.Applied))
			Expect(plan.Summary.Reason).To(Equal(reason))

			b := w.machine("b")
			b.Phase, b.Failing, b.HasProviderID = mcm.MachineRunning, false, true
			w.settle()
			Expect(w.broken).NotTo(HaveOccurred())
			Expect(w.view.Applied.Excess).To(Equal(wish), "%v", w.log)
			Expect(w.view.Machines).To(HaveLen(replicas + wish))
		},
		Entry("where one of the reserve cannot be made", 2, 1, CannotBeMade, "c"),
		Entry("where it has been replaced, and a reserve is no longer desired", 1, 0, SurplusServing),
	)

	It("stays while more than R serve: it may be made a moment later, and one that serves would go in its place (6)", func() {
		w := settled(2, 1, Unbounded)
		w.setReplicas(1)
		c := w.machine("c")
		c.Phase, c.Failing, c.HasProviderID, c.Priority, c.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, 3, 3
		w.view.Applied.Excess, w.view.SetReplicas, w.view.MaxSetReplicas = 2, 3, 3
		plan := NewPlan(w.view)
		Expect(plan.Applied).To(Equal(w.view.Applied))
		Expect(plan.Summary.Reason).To(Equal(CannotBeMade))
		w.view.Rollout = true
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1), "a rollout needs its surplus")
		w.view.Rollout = false
		w.machine("b").Phase = mcm.MachineUnknown
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1))
	})

	It("stays while it is tried again within seconds: it may be made by then, and one that serves would go in its place (6)", func() {
		w := settled(2, 1, Unbounded)
		c := w.machine("c")
		c.Phase, c.HasProviderID, c.Priority, c.SeenPriority = mcm.MachineCrashLoopBackOff, false, PriorityServing, PriorityServing
		w.setWish(0)
		plan := NewPlan(w.view)
		Expect(plan.Applied).To(Equal(w.view.Applied))
		Expect(plan.Victims).To(Equal([]Victim{{"c", Shrunk}}))
		c.Failing = true
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(0), "nothing will be made of it for minutes")
	})

	It("stays while pods run on it, which one that cannot be made has where its Machine was restored from a backup (6)", func() {
		w := settled(2, 1, Unbounded)
		c := w.machine("c")
		c.Phase, c.Failing, c.HasProviderID, c.Priority, c.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, PriorityServing, PriorityServing
		c.Pods = 1
		w.setWish(0)
		Expect(NewPlan(w.view).Applied).To(Equal(w.view.Applied))
		c.Pods = 0
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(0))
	})

	It("is given up again when it comes back while waiting, but once only", func() {
		w := settled(1, 1, Unbounded)
		w.view.Retry = Retry{Failures: 1, Until: start.Add(time.Hour)}
		m := w.machine("b")
		m.Phase, m.Failing, m.HasProviderID, m.Priority, m.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, 3, 3
		w.view.Applied.Excess, w.view.Excess = 1, 2
		plan := NewPlan(w.view)
		Expect(plan.Applied.Excess).To(Equal(0))
		Expect(plan.Retry.Failures).To(Equal(2))
		w.add(running(true))
		w.view.Applied.Excess = 1
		plan = NewPlan(w.view)
		Expect(plan.Applied.Excess).To(Equal(1), "b is about to be deleted")
		Expect(plan.Retry.Failures).To(Equal(1))
		Expect(plan.Priorities).To(BeEmpty())
	})

	It("waits twice as long after every failure, an hour at most", func() {
		w := settled(1, 1, Unbounded)
		m := w.machine("b")
		m.Phase, m.Failing, m.HasProviderID, m.Priority, m.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, 3, 3
		for failures, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
			w.view.Retry.Failures = failures
			Expect(NewPlan(w.view).Retry).To(Equal(Retry{Failures: failures + 1, Until: start.Add(wait)}))
		}
		w.view.Retry.Failures = 1 << 30
		Expect(NewPlan(w.view).Retry.Until).To(Equal(start.Add(time.Hour)))
	})
})
