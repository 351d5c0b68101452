// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// pin is why pods of a machine must not be evicted.
const pin = "NotSafeToEvict: pod default/x must not be evicted"

var _ = Describe("Patience (5)", func() {
	overstaying := func() *world {
		w := settled(3, 1, Unbounded)
		w.machine("d").Reserve, w.machine("d").Priority, w.machine("d").Pods = false, PriorityServing, 4
		w.machine("a").Pods, w.machine("b").Pods, w.machine("c").Pods = 3, 2, 5
		return w
	}

	It("begins when the surplus does, says when it ends, and then takes the emptiest", func() {
		w := overstaying()
		plan := NewPlan(w.view)
		Expect(plan.SurplusSince).To(Equal(start))
		Expect(plan.Again).To(Equal(w.view.Patience))
		Expect(plan.Victims).To(BeEmpty())
		w.carryOut(plan)
		w.view.Now = start.Add(w.view.Patience - time.Nanosecond)
		Expect(NewPlan(w.view).Victims).To(BeEmpty())
		w.view.Now = start.Add(w.view.Patience)
		Expect(NewPlan(w.view).Victims).To(Equal([]Victim{{"b", Surplus}}))
	})

	DescribeTable("takes only a machine whose pods may all be evicted",
		func(victims []Victim, pinned ...string) {
			w := overstaying()
			w.view.SurplusSince = start.Add(-time.Hour)
			for _, name := range pinned {
				w.machine(name).Pinned = pin
			}
			Expect(NewPlan(w.view).Victims).To(Equal(victims))
		},
		Entry("the emptiest, if none is pinned", []Victim{{"b", Surplus}}),
		Entry("the emptiest of the others", []Victim{{"a", Surplus}}, "b"),
		Entry("though it is the fullest", []Victim{{"c", Surplus}}, "b", "a", "d"),
		Entry("none, if all are pinned", nil, "a", "b", "c", "d"),
	)

	DescribeTable("takes no more machines than budgets allow together",
		func(victims []Victim, budgets ...pool.SharedBudget) {
			w := overstaying()
			w.setReplicas(1)
			w.setWish(3)
			w.view.Applied.Excess = 3
			w.view.SurplusSince, w.view.Budgets = start.Add(-time.Hour), budgets
			Expect(NewPlan(w.view).Victims).To(Equal(victims))
		},
		Entry("without budgets all that are too many", []Victim{{"a", Surplus}, {"b", Surplus}, {"d", Surplus}}),
		Entry("as many as one budget allows, the emptiest first", []Victim{{"a", Surplus}, {"b", Surplus}},
			pool.SharedBudget{Allowed: 3, Pods: map[string]int{"a": 1, "b": 2, "c": 1, "d": 1}}),
		Entry("one that fits beside others, though it is fuller", []Victim{{"b", Surplus}, {"c", Surplus}},
			pool.SharedBudget{Allowed: 1, Pods: map[string]int{"a": 1, "b": 1, "d": 1}}),
		Entry("only those whom each budget allows", []Victim{{"b", Surplus}},
			pool.SharedBudget{Allowed: 2, Pods: map[string]int{"a": 1, "b": 1, "d": 1}}, pool.SharedBudget{Allowed: 1, Pods: map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}}),
		Entry("none, if a budget allows none", nil, pool.SharedBudget{Pods: map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}}),
	)

	DescribeTable("takes before others",
		func(victim string, do func(*world)) {
			w := overstaying()
			w.view.SurplusSince = start.Add(-time.Hour)
			do(w)
			Expect(NewPlan(w.view).Victims).To(Equal([]Victim{{victim, Surplus}}))
		},
		Entry("a machine that would be deleted first anyway, though it is the fullest", "c", func(w *world) { w.machine("c").Priority = PriorityVictim }),
		Entry("one that boots, of those with as many pods", "a", func(w *world) { w.machine("a").Phase, w.machine("a").Pods = mcm.MachinePending, 2 }),
	)

	It("says why no machine goes", func() {
		w := overstaying()
		for i := range w.view.Machines {
			w.view.Machines[i].Pinned = pin
		}
		w.view.SurplusSince = start.Add(time.Nanosecond - w.view.Patience)
		Expect(NewPlan(w.view).Summary.Message).To(HaveSuffix("after --surplus-patience, one is drained"), "not before its end")
		w.view.SurplusSince = start.Add(-w.view.Patience)
		plan := NewPlan(w.view)
		Expect(plan.Summary.Reason).To(Equal(SurplusServing))
		Expect(plan.Summary.Message).To(HaveSuffix("; no machine is drained, because each candidate runs a pod that must not be evicted now (NotSafeToEvict: pod default/x must not be evicted, on machine b); the first empty one enters the reserve"))
		w.machine("a").Preserved, w.machine("a").Pinned = true, ""
		Expect(NewPlan(w.view).Summary.Message).To(Equal(plan.Summary.Message), "a machine that must stay anyway changes nothing")
		w.machine("b").Preserved, w.machine("c").Preserved = true, true
		Expect(NewPlan(w.view).Summary.Message).To(ContainSubstring("on machine d"), "one candidate is enough")
		w.machine("d").Preserved = true
		Expect(NewPlan(w.view).Summary.Message).To(HaveSuffix("after --surplus-patience, one is drained"), "there is none")
		w.machine("d").Preserved, w.machine("d").Pinned = false, ""
		Expect(NewPlan(w.view).Victims).NotTo(BeEmpty())
	})

	It("begins anew when enough Nodes are ready, which it asks for every minute", func() {
		w := overstaying()
		w.view.SurplusSince, w.view.Unhealthy = start.Add(-time.Hour), true
		plan := NewPlan(w.view)
		Expect(plan.Victims).To(BeEmpty())
		Expect(plan.Again).To(Equal(time.Minute))
		Expect(plan.Summary.Reason).To(Equal(SurplusServing))
		Expect(plan.Summary.Message).To(HaveSuffix("; no machine is drained while so many Nodes of the cluster are not ready; the first empty one enters the reserve"))
		w.carryOut(plan)
		w.view.Unhealthy = false
		plan = NewPlan(w.view)
		Expect(plan.Victims).To(BeEmpty())
		Expect(plan.Again).To(Equal(w.view.Patience))
	})

	It("begins anew when something leaves", func() {
		w := overstaying()
		w.view.SurplusSince = start.Add(-time.Hour)
		w.add(running(true)).Phase = mcm.MachineTerminating
		plan := NewPlan(w.view)
		Expect(plan.Victims).To(BeEmpty())
		Expect(plan.SurplusSince).To(BeZero())
	})
})

var _ = DescribeTable("Patience (5) does not count",
	func(do func(*world)) {
		w := settled(4, 1, Unbounded)
		w.setReplicas(3)
		w.view.SurplusSince = start.Add(-time.Hour)
		w.view.Machines = w.view.Machines[:4]
		Expect(NewPlan(w.view).Victims).To(HaveLen(1))
		do(w)
		plan := NewPlan(w.view)
		Expect(plan.Victims).To(BeEmpty())
		Expect(plan.SurplusSince).To(BeZero())
	},
	Entry("during a rollout", func(w *world) { w.view.Rollout = true }),
	Entry("while too many Nodes are not ready", func(w *world) { w.view.Unhealthy = true }),
	Entry("while MCM has deletions to do", func(w *world) { w.view.Applied.Excess, w.view.Excess = 0, 0 }),
)

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

var _ = DescribeTable("A reserve machine that cannot be made, one minute before the next try (10)",
	func(do func(*world), want ...Victim) {
		w := settled(3, 3, Unbounded)
		w.machine("d").Phase, w.machine("d").Failing = mcm.MachinePending, true
		w.view.Retry = Retry{Failures: 1, Until: w.view.Now.Add(time.Minute)}
		do(w)
		Expect(NewPlan(w.view).Victims).To(HaveExactElements(want))
	},
	Entry("goes", func(*world) {}, Victim{"d", Unmakeable}),
	Entry("stays while MCM has deletions to do, which may be for it", replicas(2)),
	Entry("stays during a rollout, which makes machines of its own", func(w *world) { w.view.Rollout = true }),
	Entry("goes during a rollout once the minute is over", func(w *world) {
		w.view.Rollout = true
		w.view.Now = w.view.Retry.Until
	}, Victim{"d", Unmakeable}),
)

var _ = It("The tries to make a reserve machine are remembered while settings cannot be read, so that the reserve stays as it is (10)", func() {
	w := settled(3, 2, Unbounded)
	w.view.Wish, w.view.Excess = 3, 3
	w.view.Retry = Retry{Failures: 5, Until: w.view.Now.Add(time.Minute)}
	Expect(NewPlan(w.view).Retry).To(Equal(w.view.Retry))
	w.view.SettingsUnknown, w.view.Wish, w.view.Excess = true, 2, 2
	Expect(NewPlan(w.view).Retry).To(Equal(w.view.Retry))
	w.view.Now = w.view.Retry.Until
	Expect(NewPlan(w.view).Retry).To(Equal(w.view.Retry))
	Expect(NewPlan(w.view).Applied).To(Equal(w.view.Applied))
})
