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

// pin is why pods of a machine must not be evicted.
const pin = "NotSafeToEvict: pod default/x must not be evicted"

var _ = Describe("Patience (5)", func() {
	overstaying := func() *world {
		w := settled(3, 1, Unbounded)
		w.machine("d").Reserve, w.machine("d").Pods = false, 4
		w.machine("a").Pods, w.machine("b").Pods, w.machine("c").Pods = 3, 2, 5
		return w
	}

	It("begins when the surplus does, says when it ends, and then takes the emptiest", func() {
		w := overstaying()
		plan := Decide(w.view)
		Expect(plan.SurplusSince).To(Equal(start))
		Expect(plan.Again).To(Equal(w.view.Patience))
		Expect(plan.Going).To(BeEmpty())
		w.carryOut(plan)
		w.view.Now = start.Add(w.view.Patience - time.Nanosecond)
		Expect(Decide(w.view).Going).To(BeEmpty())
		w.view.Now = start.Add(w.view.Patience)
		Expect(Decide(w.view).Going).To(Equal([]Deletion{{"b", Surplus}}))
	})

	DescribeTable("takes only a machine whose pods may all be evicted",
		func(victims []Deletion, pinned ...string) {
			w := overstaying()
			w.view.SurplusSince = start.Add(-time.Hour)
			for _, name := range pinned {
				w.machine(name).Pinned = pin
			}
			Expect(Decide(w.view).Going).To(Equal(victims))
		},
		Entry("the emptiest, if none is pinned", []Deletion{{"b", Surplus}}),
		Entry("the emptiest of the others", []Deletion{{"a", Surplus}}, "b"),
		Entry("though it is the fullest", []Deletion{{"c", Surplus}}, "b", "a", "d"),
		Entry("none, if all are pinned", nil, "a", "b", "c", "d"),
	)

	DescribeTable("takes no more machines than budgets allow together",
		func(victims []Deletion, budgets ...pool.SharedBudget) {
			w := overstaying()
			w.view.Replicas, w.view.Wish, w.view.Applied.Excess = 1, 3, 3
			w.view.SurplusSince, w.view.Budgets = start.Add(-time.Hour), budgets
			Expect(Decide(w.view).Going).To(ConsistOf(victims))
		},
		Entry("without budgets all that are too many", []Deletion{{"a", Surplus}, {"b", Surplus}, {"d", Surplus}}),
		Entry("as many as one budget allows, the emptiest first", []Deletion{{"a", Surplus}, {"b", Surplus}},
			pool.SharedBudget{Allowed: 3, Pods: map[string]int{"a": 1, "b": 2, "c": 1, "d": 1}}),
		Entry("one that fits beside others, though it is fuller", []Deletion{{"b", Surplus}, {"c", Surplus}},
			pool.SharedBudget{Allowed: 1, Pods: map[string]int{"a": 1, "b": 1, "d": 1}}),
		Entry("only those whom each budget allows", []Deletion{{"b", Surplus}},
			pool.SharedBudget{Allowed: 2, Pods: map[string]int{"a": 1, "b": 1, "d": 1}}, pool.SharedBudget{Allowed: 1, Pods: map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}}),
		Entry("one without pods of a budget that is exceeded", []Deletion{{"c", Surplus}}, pool.SharedBudget{Allowed: -1, Pods: map[string]int{"a": 1, "b": 1, "d": 1}}),
		Entry("none, if a budget allows none", nil, pool.SharedBudget{Pods: map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}}),
	)

	DescribeTable("takes before others",
		func(victim string, do func(*world)) {
			w := overstaying()
			w.view.SurplusSince = start.Add(-time.Hour)
			do(w)
			Expect(Decide(w.view).Going).To(Equal([]Deletion{{victim, Surplus}}))
		},
		Entry("a machine that a client wants deleted first, though it is the fullest", "c", first("c")),
		Entry("one that boots, of those with as many pods", "b", func(w *world) {
			w.machine("a").Pods = 2
			w.machine("b").Phase = mcm.MachinePending
		}),
	)

	It("says why no machine goes", func() {
		w := overstaying()
		for i := range w.view.Machines {
			w.view.Machines[i].Pinned = pin
		}
		w.view.SurplusSince = start.Add(time.Nanosecond - w.view.Patience)
		Expect(Decide(w.view).Summary.Message).To(HaveSuffix("after --surplus-patience, one is drained"), "not before its end")
		w.view.SurplusSince = start.Add(-w.view.Patience)
		plan := Decide(w.view)
		Expect(plan.Summary.Reason).To(Equal(SurplusServing))
		Expect(plan.Summary.Message).To(HaveSuffix("; no machine is drained, because each one runs a pod that must not be evicted now (NotSafeToEvict: pod default/x must not be evicted, on machine b); the first empty one enters the reserve"))
		w.machine("a").Protected, w.machine("a").Pinned = true, ""
		Expect(Decide(w.view).Summary.Message).To(Equal(plan.Summary.Message), "a machine that must stay anyway changes nothing")
		w.machine("b").Protected, w.machine("c").Protected = true, true
		Expect(Decide(w.view).Summary.Message).To(ContainSubstring("on machine d"), "one candidate is enough")
		w.machine("d").Protected = true
		Expect(Decide(w.view).Summary.Message).To(HaveSuffix("after --surplus-patience, one is drained"), "there is none")
		w.machine("d").Protected, w.machine("d").Pinned = false, ""
		Expect(Decide(w.view).Going).NotTo(BeEmpty())
	})

	It("begins anew when enough Nodes are ready, which it asks for every minute", func() {
		w := overstaying()
		w.view.SurplusSince, w.view.Unhealthy = start.Add(-time.Hour), true
		plan := Decide(w.view)
		Expect(plan.Going).To(BeEmpty())
		Expect(plan.Again).To(Equal(time.Minute))
		Expect(plan.Summary.Reason).To(Equal(SurplusServing))
		Expect(plan.Summary.Message).To(HaveSuffix("; no machine is drained while so many Nodes of the cluster are not ready; the first empty one enters the reserve"))
		w.carryOut(plan)
		w.view.Unhealthy = false
		plan = Decide(w.view)
		Expect(plan.Going).To(BeEmpty())
		Expect(plan.Again).To(Equal(w.view.Patience))
	})

	It("begins anew when something leaves", func() {
		w := overstaying()
		w.view.SurplusSince = start.Add(-time.Hour)
		w.add(running(true)).Phase = mcm.MachineTerminating
		plan := Decide(w.view)
		Expect(plan.Going).To(BeEmpty())
		Expect(plan.SurplusSince).To(BeZero())
	})
})

var _ = DescribeTable("Patience (5) does not count",
	func(do func(*world)) {
		w := settled(4, 1, Unbounded)
		w.view.Replicas, w.view.Applied.Excess, w.view.SurplusSince = 3, 1, start.Add(-time.Hour)
		w.view.Machines = w.view.Machines[:4]
		Expect(Decide(w.view).Going).To(HaveLen(1))
		do(w)
		plan := Decide(w.view)
		Expect(plan.Going).To(BeEmpty())
		Expect(plan.SurplusSince).To(BeZero())
	},
	Entry("during a rollout", replacing),
	Entry("while too many Nodes are not ready", ailing),
	Entry("while Nodes are not seen", unknown),
	Entry("where that many are cut", func(w *world) { w.view.Applied.Excess = 0; w.view.SetReplicas = 3 }),
)

var _ = Describe("Reserve that cannot be made (10)", func() {
	It("is given up, so that repair goes on, and tried again with back-off, one machine first", func() {
		w := settled(3, 0, Unbounded)
		w.outage = true
		w.view.Wish = 3
		_, rested := w.settle()
		Expect(rested).To(BeTrue())
		Expect(w.view.Applied.Excess).To(BeZero(), "%v", w.log)
		Expect(w.view.Machines).To(HaveLen(3))
		plan := Decide(w.view)
		Expect(plan.Summary.Reason).To(Equal(CannotBeMade))
		Expect(plan.Summary.Message).To(HavePrefix("3 of 3 machines serve, 0 of 3 in reserve, 0 of these ready; failures to create machines in a row: 1"))
		Expect(plan.Again).To(BeNumerically("~", time.Minute, 10*time.Second))

		w.view.Now = w.view.Now.Add(2 * time.Minute)
		Expect(Decide(w.view).Applied.Excess).To(Equal(1))
		w.settle()
		Expect(w.view.Retry.Failures).To(Equal(2))
		Expect(w.view.Applied.Excess).To(BeZero())
		Expect(Decide(w.view).Again).To(BeNumerically("~", 2*time.Minute, 10*time.Second))

		w.outage = false
		w.view.Now = w.view.Now.Add(time.Hour)
		plan, _ = w.settle()
		Expect(plan.Summary).To(And(HaveField("Ready", 3), HaveField("Reason", Complete)))
		Expect(w.view.Retry).To(BeZero())
		Expect(w.broken).NotTo(HaveOccurred())
	})

	It("is filled up to what was left of it while it waits, as long as that succeeds", func() {
		w := settled(3, 3, Unbounded)
		cannotBeMade(w)
		w.carryOut(Decide(w.view))
		Expect(w.view.Retry).To(Equal(Retry{Failures: 1, Until: start.Add(time.Minute), Left: 2}))
		w.view.Machines = append(w.view.Machines[:3], w.view.Machines[4:]...)
		w.view.Replicas = 4
		Expect(decision(w.view)).To(Equal("6; e Released; 1 come, 0 serve"))
		w.carryOut(Decide(w.view))
		failed := w.add(running(true))
		failed.Phase, failed.Failing, failed.HasProviderID = mcm.MachineCrashLoopBackOff, true, false
		Expect(decision(w.view)).To(Equal("5; g goes (Unmakeable)"))
		Expect(Decide(w.view).Retry).To(Equal(Retry{Failures: 1, Until: start.Add(time.Minute), Left: 1}))
	})

	It("does not become ready in time: it goes, at its deadline", func() {
		w := settled(1, 1, Unbounded)
		w.machine("b").Phase = mcm.MachinePending
		plan := Decide(w.view)
		Expect(plan.Again).To(Equal(w.machine("b").Created.Add(w.view.BootPatience).Sub(start)))
		Expect(plan.Summary.Reason).To(Equal(NotReady))
		w.view.Now = w.view.Now.Add(plan.Again)
		Expect(Decide(w.view).Going).To(Equal([]Deletion{{"b", Unmakeable}}))
	})

	It("waits twice as long after every failure, an hour at most", func() {
		w := settled(1, 1, Unbounded)
		w.machine("b").Phase, w.machine("b").Failing, w.machine("b").HasProviderID = mcm.MachineCrashLoopBackOff, true, false
		for failures, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
			w.view.Retry.Failures = failures
			Expect(Decide(w.view).Retry).To(Equal(Retry{Failures: failures + 1, Until: start.Add(wait)}))
		}
		w.view.Retry.Failures = 1 << 30
		Expect(Decide(w.view).Retry.Until).To(Equal(start.Add(time.Hour)))
	})
})

var _ = It("The tries to make a reserve machine are remembered while settings cannot be read, so that the reserve stays as it is (10)", func() {
	w := settled(3, 2, Unbounded)
	w.view.Wish = 3
	w.view.Retry = Retry{Failures: 5, Until: w.view.Now.Add(time.Minute)}
	Expect(Decide(w.view).Retry).To(Equal(w.view.Retry))
	w.view.SettingsUnknown, w.view.Wish = true, 2
	Expect(Decide(w.view).Retry).To(Equal(w.view.Retry))
	w.view.Now = w.view.Retry.Until
	Expect(Decide(w.view).Retry).To(Equal(w.view.Retry))
	Expect(Decide(w.view).Applied).To(Equal(w.view.Applied))
})
