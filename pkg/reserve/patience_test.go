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
