// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

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
				w.machine(name).Pinned = true
			}
			Expect(NewPlan(w.view).Victims).To(Equal(victims))
		},
		Entry("the emptiest, if none is pinned", []Victim{{"b", Surplus}}),
		Entry("the emptiest of the others", []Victim{{"a", Surplus}}, "b"),
		Entry("though it is the fullest", []Victim{{"c", Surplus}}, "b", "a", "d"),
		Entry("none, if all are pinned", nil, "a", "b", "c", "d"),
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
			w.view.Machines[i].Pinned = !w.view.Machines[i].Reserve
		}
		plan := NewPlan(w.view)
		Expect(plan.Summary.Reason).To(Equal(SurplusServing))
		Expect(plan.Summary.Message).To(HaveSuffix("; no machine is drained, because each candidate runs a pod that must not be evicted; the first empty one enters the reserve"))
		w.machine("a").Preserved, w.machine("a").Pinned = true, false
		Expect(NewPlan(w.view).Summary.Message).To(Equal(plan.Summary.Message), "a machine that must stay anyway changes nothing")
		w.machine("b").Preserved, w.machine("c").Preserved = true, true
		Expect(NewPlan(w.view).Summary.Message).To(Equal(plan.Summary.Message), "one candidate is enough")
		w.machine("d").Preserved = true
		Expect(NewPlan(w.view).Summary.Message).To(HaveSuffix("after --surplus-patience, one is drained"), "there is none")
		w.machine("d").Preserved, w.machine("d").Pinned = false, false
		Expect(NewPlan(w.view).Summary.Message).To(HaveSuffix("after --surplus-patience, one is drained"))
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
