// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = DescribeTable("A reserve of two of three, though replicas that include it were reduced (17), is",
	func(want Reason, most int, until time.Duration) {
		v := reduced()
		v.Excess, v.Max, v.Lowered.Max, v.Lowered.Until = min(3, most-5), most, most, start.Add(until)
		Expect(NewPlan(v).Summary.Reason).To(Equal(want))
	},
	Entry("as large as the client lets it be", ReplicasLowered, 9, time.Minute),
	Entry("as large as max allows, which the client does not change", AtMax, 7, time.Minute),
	Entry("as large as max allows, when the client's reduction is over", AtMax, 7, -time.Minute),
	Entry("about to grow, when the client's reduction is over", Growing, 9, -time.Minute),
)

var _ = DescribeTable("A reduction by two of replicas that include the reserve (17) leaves workload",
	func(want int, change func(*View)) {
		v := reduced()
		v.Applied.Counted, v.Applied.Absorbed, v.Lowered = 0, 2, Lowered{}
		change(&v)
		Expect(NewPlan(v).Replicas).To(Equal(want))
	},
	Entry("as it is while all machines serve", 5, func(*View) {}),
	Entry("one fewer if one is gone", 4, func(v *View) { v.Machines = v.Machines[1:] }),
	Entry("as it is if one is unhealthy, which is replaced", 5, func(v *View) { v.Machines[0].Phase = mcm.MachineUnknown }),
	Entry("as it is if one has failed", 5, func(v *View) { v.Machines[0].Phase = mcm.MachineFailed }),
)

// reduced is a pool of five machines that serve and two in reserve, which replicas include. Three were desired, until a client reduced them.
func reduced() View {
	v := View{
		Replicas: 5, Wish: 3, Excess: 3, Min: 1, Max: 9, Accounting: pool.Inclusive, CurrentSet: "new", SetReplicas: 7, MaxSetReplicas: 7,
		Applied: Applied{Excess: 2, Max: 7, Counted: 2}, Now: start,
		Lowered: Lowered{Times: 2, Until: start.Add(time.Minute), Replicas: 7, Wish: 3, Max: 9},
	}
	for i := range 7 {
		m := Machine{Name: fmt.Sprint("m", i), Created: start, Phase: mcm.MachineRunning, Set: "new", HasProviderID: true, Registered: true, Priority: PriorityServing, SeenPriority: PriorityServing}
		if i >= 5 {
			m.Reserve, m.Priority, m.SeenPriority = true, PriorityReserve, PriorityReserve
		}
		v.Machines = append(v.Machines, m)
	}
	return v
}

var _ = Describe("A reduction of replicas (17)", func() {
	DescribeTable("is over as soon as a client requests something else", func(over bool, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(NewPlan(v).Lowered.Until.Equal(v.Now)).To(Equal(over))
	},
		Entry("but not before", false, func(*View) {}),
		Entry("another excess", true, func(v *View) { v.Wish = 4 }),
		Entry("another max", true, func(v *View) { v.Max = 8 }),
		Entry("more replicas", true, func(v *View) { v.Replicas++ }),
		Entry("but not by settings that cannot be read, so that the reserve stays as it is", false, func(v *View) { v.SettingsUnknown, v.Wish, v.Excess, v.Max = true, 2, 2, 7 }),
		Entry("more replicas, though settings cannot be read", true, func(v *View) { v.SettingsUnknown, v.Wish, v.Excess, v.Max = true, 2, 2, 7; v.Replicas++ }),
	)

	DescribeTable("to a max that the client knows lasts until a client requests something else", func(limits bool, change func(*View)) {
		v := reduced()
		v.Lowered.Lasting, v.Lowered.Until = true, start.Add(-100*time.Hour)
		change(&v)
		p := NewPlan(v)
		Expect(p.Lowered.Lasting).To(Equal(limits))
		Expect(p.Summary.Reason == ReplicasLowered).To(Equal(limits))
	},
		Entry("for ever", true, func(*View) {}),
		Entry("another excess", false, func(v *View) { v.Wish = 4 }),
		Entry("another max", false, func(v *View) { v.Max = 8 }),
		Entry("more replicas", false, func(v *View) { v.Replicas++ }),
	)

	DescribeTable("is known to be to a max by the client alone", func(clamped bool) {
		v := reduced()
		v.Lowered, v.Clamped = Lowered{}, clamped
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		Expect(NewPlan(v).Lowered.Lasting).To(Equal(clamped))
	},
		Entry("that knows it", true),
		Entry("that does not", false),
	)

	DescribeTable("is followed by a wait that doubles, up to an hour", func(times int, want time.Duration) {
		v := reduced()
		v.Lowered = Lowered{Times: times, Until: start}
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		Expect(NewPlan(v).Lowered).To(And(HaveField("Times", times+1), HaveField("Until", start.Add(want))))
	},
		Entry("the first", 0, time.Minute),
		Entry("the second", 1, 2*time.Minute),
		Entry("the sixth", 5, 32*time.Minute),
		Entry("the seventh", 6, time.Hour),
		Entry("the hundredth", 99, time.Hour),
	)

	DescribeTable("that comes while settings cannot be read is over once these differ from", func(over bool, was Lowered, wish, most int) {
		v := reduced()
		v.Lowered, v.Applied.Counted, v.Applied.Absorbed = was, 1, 1
		v.SettingsUnknown, v.Wish, v.Excess, v.Max = true, 2, 2, 7
		v.Lowered = NewPlan(v).Lowered
		Expect(v.Lowered.Replicas).To(Equal(6))
		v.Applied = Applied{Excess: 1, Max: 7, Counted: 1}
		v.Lowered = NewPlan(v).Lowered
		for range 2 {
			v.SettingsUnknown, v.Wish, v.Excess, v.Max = false, wish, wish, most
			p := NewPlan(v)
			Expect(p.Lowered.Until.Equal(v.Now)).To(Equal(over))
			v.Lowered = p.Lowered
		}
		v.Wish, v.Excess = 4, 4
		Expect(NewPlan(v).Lowered.Until).To(Equal(v.Now))
	},
		Entry("the first that can be read", false, Lowered{}, 3, 9),
		Entry("those of the reduction before, and these are the same", false, reduced().Lowered, 3, 9),
		Entry("those of the reduction before, another excess", true, reduced().Lowered, 2, 9),
		Entry("those of the reduction before, another max", true, reduced().Lowered, 3, 8),
	)

	It("leaves room for machines that wait, before it includes what is in reserve (16)", func() {
		v := reduced()
		v.Lowered, v.Applied.Counted, v.Max = Lowered{}, 0, 7
		Expect(NewPlan(v).Applied.Counted).To(Equal(2))
		v.Waiting = 1
		Expect(NewPlan(v).Applied.Counted).To(Equal(1))
	})

	It("is recorded with what was asked for then", func() {
		v := reduced()
		v.Lowered = Lowered{}
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		Expect(NewPlan(v).Lowered).To(Equal(Lowered{Times: 1, Until: start.Add(time.Minute), Replicas: 6, Wish: 3, Max: 9}))
	})

	DescribeTable("is forgotten an hour after it may be tried to grow again", func(forgotten bool, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(NewPlan(v).Lowered == Lowered{}).To(Equal(forgotten))
	},
		Entry("then", true, func(v *View) { v.Lowered.Until = start.Add(-time.Hour) }),
		Entry("not before", false, func(v *View) { v.Lowered.Until = start.Add(1 - time.Hour) }),
		Entry("not if it lasts", false, func(v *View) { v.Lowered.Until, v.Lowered.Lasting = start.Add(-time.Hour), true }),
	)

	DescribeTable("is looked at again", func(want time.Duration, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(NewPlan(v).Again).To(Equal(want))
	},
		Entry("when the reserve may be tried to grow again", time.Minute, func(*View) {}),
		Entry("when it is forgotten, so that it does not limit a later rollout", 50*time.Minute, func(v *View) { v.Lowered.Until = start.Add(-10 * time.Minute) }),
		Entry("no more if it lasts", time.Duration(0), func(v *View) { v.Lowered.Until, v.Lowered.Lasting = start.Add(-10*time.Minute), true }),
	)

	It("keeps the time at which it ended, even if another excess is requested later", func() {
		v := reduced()
		v.Lowered.Until, v.Wish = start.Add(-time.Minute), 4
		Expect(NewPlan(v).Lowered.Until).To(Equal(start.Add(-time.Minute)))
	})

	DescribeTable("holds in a rollout, in which the reserve stays as it is", func(until time.Duration) {
		v := reduced()
		v.Rollout, v.Applied = true, Applied{Excess: 2, Max: 9, Counted: 1}
		v.Lowered.Replicas, v.Lowered.Until = 6, start.Add(until)
		p := NewPlan(v)
		Expect([]int{p.Replicas, p.Applied.Counted}).To(Equal([]int{5, 1}))
	},
		Entry("at first", time.Minute),
		Entry("when it may be tried to grow again", time.Duration(0)),
		Entry("an hour later", -time.Hour),
	)

	DescribeTable("limits the reserve", func(limits bool, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(NewPlan(v).Applied.Excess == 2).To(Equal(limits))
	},
		Entry("until it may be tried to grow again", true, func(*View) {}),
		Entry("not from then on", false, func(v *View) { v.Lowered.Until = start }),
		Entry("but in a rollout", true, func(v *View) { v.Lowered.Until, v.Rollout = start, true }),
		Entry("but in a rollout, once", true, func(v *View) { v.Lowered.Times, v.Lowered.Until, v.Rollout = 1, start, true }),
		Entry("not if there was none", false, func(v *View) { v.Lowered.Times = 0 }),
	)

	It("settles no machine that serves", func() {
		v := reduced()
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		v.Machines[0].Named = true
		Expect(NewPlan(v).Returned).To(BeEmpty())
	})

	DescribeTable("has machines of the reserve serve below min", func(accounting pool.Accounting, min int, want Applied, replicas int) {
		v := reduced()
		v.Lowered, v.Accounting, v.Min, v.Wish, v.Excess, v.Max = Lowered{}, accounting, min, 2, 2, 7
		p := NewPlan(v)
		Expect(p.Applied).To(Equal(want))
		Expect(p.Replicas).To(Equal(replicas))
	},
		Entry("not above it", pool.Inclusive, 7, Applied{Excess: 2, Max: 7, Counted: 2}, 5),
		Entry("not with those that it needs", pool.Additive, 5, Applied{Excess: 2, Max: 7}, 5),
		Entry("as many as are missing", pool.Additive, 6, Applied{Excess: 1, Max: 7}, 6),
	)

	It("settles each machine in reserve that was named with it once", func() {
		v := reduced()
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		v.Machines[6].Named = true
		Expect(NewPlan(v).Returned).To(ConsistOf("m6"))
		v.Machines[6].Returned = true
		Expect(NewPlan(v).Returned).To(BeEmpty())
	})

	It("settles no more machines than the reserve takes, and replicas are restored for the others", func() {
		v := reduced()
		v.Applied.Counted, v.Applied.Absorbed, v.Lowered = 0, 1, Lowered{}
		v.Replicas--
		v.Machines[5].Named, v.Machines[6].Named = true, true
		p := NewPlan(v)
		Expect(p.Returned).To(ConsistOf("m5"))
		v.Machines[5].Returned = true
		v.Replicas, v.Applied, v.Lowered = p.Replicas, p.Applied, p.Lowered
		v.Applied.Counted = 0
		p = NewPlan(v)
		Expect(p.Returned).To(ConsistOf("m6"))
		Expect(p.Replicas).To(Equal(v.Replicas + 1))
	})
})

var _ = Describe("A reserve that counts nowhere", func() {
	It("is applied up to what there is, though one that leaves fills the place below max (8)", func() {
		v := reduced()
		v.Accounting, v.Applied, v.Lowered, v.Wish, v.Excess, v.Max = pool.Additive, Applied{Excess: 1, Max: 7}, Lowered{}, 2, 2, 7
		leaving := v.Machines[0]
		leaving.Name, leaving.Deleted = "leaving", true
		v.Machines = append(v.Machines, leaving)
		v.SetReplicas, v.MaxSetReplicas = 8, 8
		Expect(NewPlan(v).Applied.Excess).To(Equal(2))
	})

	It("does not serve with a machine that boots and may be about to be deleted (9)", func() {
		v := reduced()
		v.Accounting, v.Applied, v.Lowered, v.Wish, v.Excess = pool.Additive, Applied{Max: 9}, Lowered{}, 0, 0
		v.Machines = append(v.Machines[1:5], v.Machines[6])
		v.Machines[4].Phase, v.Machines[4].Priority, v.Machines[4].SeenPriority = mcm.MachinePending, PriorityVictim, PriorityVictim
		v.SetReplicas, v.MaxSetReplicas = 4, 4
		Expect(NewPlan(v).Moves).To(BeEmpty())
		v.SetReplicas, v.MaxSetReplicas = 5, 5
		Expect(NewPlan(v).Moves).To(HaveLen(1))
	})
})
