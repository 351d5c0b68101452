// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

func probing(n int32) func(*Spec) { return func(s *Spec) { Rebalance(s).Probe = ptr.To(n) } }

// late is a view in which replicas of a cluster have been missing for an hour.
func late(v plan.View, name string) plan.View { return since(v, name, time.Hour) }

var _ = Describe("Maxima", func() {
	table := func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) }

	DescribeTable("stay as they are", table,
		Entry("if all is given out", view(Federated(2, 20), has("a", 1, 5, 3), has("b", 1, 15, 3)), "5/15"),
		Entry("if who asks for more may not have more", view(Federated(2, 20, Prefer("a", AtMost(5))), has("a", 1, 5, 5, wants(9)), has("b", 1, 5, 2), has("c", 1, 10, 2)), "5/5/10"),
		Entry("if who asks for more does not get what it has", late(view(Federated(2, 20), has("a", 1, 5, 5, wants(9), readyCondition(2)), has("b", 1, 15, 2)), "a"), "5/15"),
		Entry("if one is at its minimum", view(Federated(5, 20), has("a", 4, 4, 4, wantsLess(3)), has("b", 1, 16, 3)), "4/16"),
		Entry("if more would be left than all may have", view(Federated(2, 20, Prefer("*", AtMost(6))), has("a", 1, 6, 3), has("b", 1, 6, 3)), "6/6"),
		Entry("while others still move, and what they leave is for those that join", view(Federated(2, 20), has("a", 1, 10, 3, busy(1, 5)), has("b", 1, 10, 3)), "5/10"),
		Entry("while others still move, whichever comes first", view(Federated(2, 20), has("a", 1, 10, 3), has("b", 1, 10, 3, busy(1, 5))), "10/5"),
	)

	DescribeTable("change", table,
		Entry("if some are left", view(Federated(2, 20), has("a", 1, 5, 3), has("b", 1, 10, 3)), "10/10"),
		Entry("if some are left while an order does not end", view(Federated(2, 20), has("a", 1, 5, 3, func(c *plan.Cluster) { c.InFlight, c.Sent = &plan.Bounds{Min: 1, Max: 3}, noon.Add(-time.Minute) }), has("b", 1, 10, 3)), "5/15"),
		Entry("if they are too much, while others move as well", view(Federated(2, 10), has("a", 1, 10, 3, busy(1, 5)), has("b", 1, 8, 3)), "5/5"),
		Entry("if a cluster joins at zero", view(Federated(1, 10, allowZero), has("a", 1, 10, 3), none("b")), "5/5"),
		Entry("if a minimum rises above one", view(Federated(12, 20, Prefer("a", atLeast(8))), has("a", 2, 5, 5), has("b", 10, 15, 10)), "9/11"),
		Entry("by the cluster that has more, where an odd one is left", view(Federated(2, 15), has("a", 1, 5, 1), has("b", 1, 8, 1)), "7/8"),
		Entry("evenly, if a preference names no weight", view(Federated(2, 12, Prefer("a", AtMost(10))), none("a"), none("b")), "6/6"),
		Entry("to no more than all may have, though a preference names more", view(Federated(1, 12, Prefer("a", AtMost(50))), none("a")), "12"),
		Entry("by one at least, if a cluster asks for an unknown number more", view(Federated(2, 20), has("a", 1, 10, 10, wants(0)), has("b", 1, 10, 3)), "11/9"),
		Entry("by the cluster that has more, where both run more than all may have", view(Federated(2, 9), has("a", 1, 2, 5), has("b", 1, 5, 5)), "4/5"),
		Entry("by the cluster that has more, where only one can have headroom", view(Federated(2, 7), has("a", 1, 3, 3), has("b", 1, 5, 3)), "3/4"),
		Entry("to one each at least", view(Federated(1, 2), has("a", 1, 5, 5), has("b", 1, 5, 0)), "1/1"),
	)

	DescribeTable("of replicas that do not become ready", table,
		Entry("are not taken back if no other cluster needs them", late(view(Federated(2, 14), has("a", 1, 5, 5, wants(9), readyCondition(2)), has("b", 1, 5, 2)), "a"), "7/7"),
		Entry("go to those in need, except for one to try", late(view(Federated(2, 20), has("a", 1, 10, 5, readyCondition(2)), has("b", 1, 10, 10, wants(30))), "a"), "3/17"),
		Entry("go to those in need, except for some to try", late(view(Federated(2, 20, probing(3)), has("a", 1, 10, 9, readyCondition(2)), has("b", 1, 10, 10, wants(30))), "a"), "5/15"),
		Entry("are asked for in vain", late(view(Federated(2, 20, probing(3)), has("a", 1, 3, 3, wants(30), readyCondition(2)), has("b", 1, 17, 17, wants(30))), "a"), "3/17"),
		Entry("leave one at least", late(view(Federated(2, 20, probing(0)), has("a", 1, 10, 5, readyCondition(0)), has("b", 1, 10, 10, wants(30))), "a"), "1/19"),
		Entry("leave the minimum", late(view(Federated(5, 20, Prefer("a", atLeast(4))), has("a", 4, 10, 5, readyCondition(2)), has("b", 1, 10, 10, wants(30))), "a"), "4/16"),
		Entry("leave no more than is preferred", late(view(Federated(2, 20, Prefer("a", AtMost(6))), has("a", 1, 6, 6, readyCondition(5)), has("b", 1, 14, 14, wants(30))), "a"), "6/14"),
	)

	DescribeTable("for those that join", table,
		Entry("are their part of what is left beyond what runs", view(Federated(2, 20), has("a", 1, 12, 12, wants(30)), none("b")), "17/3"),
		Entry("are their part by weight", view(Federated(2, 20, Prefer("b", Weight(3))), has("a", 1, 12, 12, wants(30)), none("b")), "15/5"),
		Entry("are one, where a lower tier needs the rest", view(Federated(2, 20, Prefer("b", Tier(1))), has("a", 1, 12, 12, wants(30)), none("b")), "19/1"),
		Entry("are one, where a lower tier needs the rest, whatever its name", view(Federated(2, 20, Prefer("a", Tier(1))), none("a"), has("b", 1, 12, 12, wants(30))), "1/19"),
		Entry("are one, where a lower tier needs the rest, whatever headroom others keep", view(Federated(2, 20, Prefer("b", Tier(1)), func(s *Spec) { Rebalance(s).Headroom = ptr.To[int32](3) }), has("a", 1, 12, 12, wants(14)), none("b")), "19/1"),
		Entry("are all that is left, where others have a higher tier", view(Federated(2, 20, Prefer("a", Tier(1))), has("a", 1, 12, 12, wants(30)), none("b")), "13/7"),
		Entry("are no more than is preferred", view(Federated(2, 20, Prefer("b", AtMost(2))), has("a", 1, 12, 12, wants(30)), none("b")), "18/2"),
		Entry("are all, if there is no other cluster", view(Federated(1, 20), none("a")), "20"),
	)

	DescribeTable("of clusters that do not scale", table,
		Entry("do not grow", view(Federated(2, 20), has("a", 1, 5, 3, inactive), has("b", 1, 5, 3)), "5/15"),
		Entry("do not shrink for those in need", view(Federated(2, 20), has("a", 1, 10, 3, inactive), has("b", 1, 10, 10, wants(20))), "10/10"),
		Entry("are missing nothing", view(Federated(2, 20), has("a", 1, 10, 10, wants(30), inactive), has("b", 1, 10, 3)), "10/10"),
	)

	DescribeTable("that were lowered leave", table,
		Entry("minima, if these fit", moved(view(Federated(8, 12), has("a", 1, 10, 1), has("b", 1, 6, 6, wants(20))), "a", time.Minute), "4/8"),
		Entry("what was given a moment ago, if that fits", moved(view(Federated(2, 14), has("a", 1, 8, 1), has("b", 1, 8, 6, wants(20))), "a", time.Minute), "8/6"),
		Entry("what runs, if minima beside it do not fit", view(Federated(6, 10), has("a", 4, 6, 1), has("b", 2, 8, 8)), "2/8"),
		Entry("an equal part of each, if what runs does not fit", view(Federated(8, 10), has("a", 6, 10, 6), has("b", 2, 10, 9)), "5/5"),
		Entry("as much at a time as all have, if nothing else is said", view(Federated(2, 10), has("a", 1, 12, 0), has("b", 1, 8, 8, wants(20))), "2/8"),
	)

	DescribeTable("that move in steps", table,
		Entry("keep the rest", view(Federated(2, 20, func(s *Spec) { Rebalance(s).MaxStepPercent = ptr.To[int32](25) }), has("a", 1, 10, 1), has("b", 1, 10, 10, wants(30))), "5/15"),
		Entry("of a percentage of the maximum", view(Federated(2, 300, func(s *Spec) { Rebalance(s).MaxStepPercent = ptr.To[int32](50) }), has("a", 1, 200, 1), has("b", 1, 100, 100, wants(300))), "50/250"),
		Entry("of a percentage that is rounded up", view(Federated(2, 18, func(s *Spec) { Rebalance(s).MaxStepPercent = ptr.To[int32](20) }), has("a", 1, 9, 1), has("b", 1, 9, 9, wants(30))), "5/13"),
	)

	It("leave no minimum above them", func() {
		p := plan.New(view(Federated(8, 10), has("a", 6, 10, 6), has("b", 2, 10, 9)))
		Expect(least(p)).To(Equal("5/2"))
	})

	DescribeTable("are missing",
		func(v plan.View, missing, room int) {
			p := plan.New(v)
			Expect(p.Missing).To(BeEquivalentTo(missing))
			Expect(p.Room).To(BeEquivalentTo(room))
		},
		Entry("nowhere", view(Federated(2, 20), has("a", 1, 10, 3), has("b", 1, 10, 3)), 0, 20),
		Entry("where more is asked for than there is", view(Federated(2, 20), has("a", 1, 10, 10, wants(13)), has("b", 1, 10, 10, wants(12))), 5, 20),
		Entry("not where enough can be given", view(Federated(2, 20), has("a", 1, 10, 10, wants(13)), has("b", 1, 10, 3)), 0, 20),
		Entry("not where replicas do not become ready", late(view(Federated(1, 10), has("a", 1, 10, 10, wants(13), readyCondition(2))), "a"), 0, 10),
		Entry("not where nothing is scaled", view(Federated(1, 10), has("a", 1, 10, 10, wants(13), inactive)), 0, 10),
		Entry("not where nothing can be written", view(Federated(2, 20), has("a", 1, 10, 10, wants(13), pausing), has("b", 1, 10, 3)), 0, 10),
		Entry("nowhere, if one cluster keeps more than all", view(Federated(2, 20), has("a", 1, 25, 3, away), has("b", 1, 1, 1)), 0, 0),
	)

	DescribeTable("may change once a cluster may give again",
		func(v plan.View, again time.Duration) {
			v.Object.Spec.Paused = true
			Expect(plan.New(v).Again).To(Equal(again))
		},
		Entry("after its cooldown", moved(view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "b", time.Minute), time.Minute),
		Entry("after the first of two cooldowns", moved(moved(view(Federated(3, 18), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1), has("c", 1, 6, 1)), "b", 30*time.Second), "c", time.Minute), time.Minute),
		Entry("not if no cluster needs more", moved(view(Federated(2, 14), has("a", 1, 6, 1), has("b", 1, 6, 1)), "b", time.Minute), time.Duration(0)),
		Entry("not if it has nothing to give", moved(view(Federated(2, 12), has("a", 1, 9, 9, wants(20)), has("b", 1, 3, 2)), "b", time.Minute), time.Duration(0)),
		Entry("not if it has cooled down", moved(view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "b", 2*time.Minute), time.Duration(0)),
	)

	It("may be given away exactly after the cooldown", func() {
		v := moved(view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "b", 2*time.Minute)
		Expect(aims(plan.New(v))).To(Equal("10/2"))
		v.Now = noon.Add(-time.Nanosecond)
		Expect(aims(plan.New(v))).To(Equal("6/6"))
	})
})

// between is a preference for a minimum and a maximum.
func between(lo, hi int32) func(*v1alpha1.ClusterPreference) {
	return func(p *v1alpha1.ClusterPreference) { p.MinReplicas, p.MaxReplicas = ptr.To(lo), ptr.To(hi) }
}

// atZero is what an autoscaler does that has scaled its workload to 0.
func atZero(c *plan.Cluster) { c.Local.AtZero = true }

var _ = Describe("Minima", func() {
	table := func(v plan.View, expected string) { Expect(least(plan.New(v))).To(Equal(expected)) }

	DescribeTable("are even", table,
		Entry("where clusters join", view(Federated(4, 10), none("a"), none("b")), "2/2"),
		Entry("where clusters join and minima may move", view(Federated(4, 10, Minima), none("a"), none("b")), "2/2"),
		Entry("where a cluster joins at zero", view(Federated(2, 10, allowZero), has("a", 2, 10, 3), none("b")), "1/1"),
		Entry("as far as those that join leave the room that others run in", view(Federated(8, 10), has("a", 5, 10, 7), none("b")), "5/3"),
		Entry("as far as there is room for more than what runs", view(Federated(8, 10), has("a", 1, 10, 9), none("b")), "7/1"),
		Entry("unless they are different and still add up", view(Federated(4, 10), has("a", 3, 5, 3), has("b", 1, 5, 3)), "3/1"),
		Entry("once they have to rise, for the cluster that has more where an odd one is left", view(Federated(7, 20), has("a", 2, 10, 2), has("b", 4, 10, 4)), "3/4"),
		Entry("once they have to fall", view(Federated(4, 20), has("a", 2, 10, 2), has("b", 6, 10, 6)), "2/2"),
		Entry("once they have to fall, whoever needs fewer, if they may not move", view(Federated(4, 20), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7)), "2/2"),
		Entry("once they have to fall, except where they hinder, if they may move", view(Federated(4, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7)), "1/3"),
		Entry("as far as there is room, and the odd one where it is already", view(Federated(6, 10), has("a", 1, 10, 5), has("b", 3, 10, 4), none("c")), "2/3/1"),
		Entry("whatever the weights and tiers of clusters", view(Federated(4, 20, Prefer("a", Weight(3)), Prefer("b", Tier(1))), none("a"), none("b")), "2/2"),
		Entry("of one, if none is asked for", view(Federated(1, 10, func(s *Spec) { s.MinReplicas = nil }), has("a", 1, 10, 3)), "1"),
	)

	DescribeTable("respect preferences", table,
		Entry("for more", view(Federated(4, 10, Prefer("a", atLeast(3))), none("a"), none("b")), "3/1"),
		Entry("for more, in a cluster that has less", view(Federated(4, 20, Prefer("a", atLeast(3))), has("a", 1, 10, 3), has("b", 3, 10, 3)), "3/1"),
		Entry("for more, only as far as the maximum of all allows", view(Federated(1, 4, Prefer("*", atLeast(3))), none("a"), none("b")), "2/2"),
		Entry("for more, only as far as the preferred maximum allows", view(Federated(2, 20, Prefer("a", between(8, 5))), none("a"), none("b")), "5/1"),
		Entry("for a maximum below the present minimum", view(Federated(6, 20, Prefer("a", AtMost(4))), has("a", 5, 10, 5), has("b", 1, 10, 5)), "3/3"),
		Entry("for a maximum at the present minimum", view(Federated(6, 20, Prefer("a", AtMost(5))), has("a", 5, 10, 5), has("b", 1, 10, 5)), "5/1"),
		Entry("for more, not where there is no room at all", view(Federated(1, 10, allowZero, Prefer("a", atLeast(1))), has("a", 0, 1, 1), has("b", 0, 10, 3, away)), "0/0"),
		Entry("for something else, which leave the minimum at zero", view(Federated(1, 10, allowZero, Prefer("b", Weight(1))), none("a"), none("b")), "1/0"),
		Entry("for a cluster by its name before those for all", view(Federated(2, 20, Prefer("*", atLeast(2)), Prefer("a", atLeast(4))), none("a"), none("b")), "4/2"),
	)

	DescribeTable("of clusters that cannot be changed count", table,
		Entry("out of reach", view(Federated(4, 10), has("a", 3, 5, 3, away), has("b", 1, 5, 3)), "3/1"),
		Entry("with more than all should have", view(Federated(2, 10), has("a", 5, 6, 5, away), has("b", 1, 4, 1)), "5/1"),
		Entry("with a maximum that leaves less room than is asked for", view(Federated(6, 10), has("a", 1, 8, 3, away), has("b", 1, 1, 1), has("c", 1, 1, 1)), "1/1/1"),
		Entry("with a maximum that leaves no room at all", view(Federated(2, 10), has("a", 1, 12, 3, away), has("b", 1, 1, 1)), "1/-"),
		Entry("with a maximum that leaves no room at all, where others come first", view(Federated(2, 10), has("a", 1, 1, 1), has("b", 1, 12, 3, away)), "1/1"),
		Entry("with what is on its way to them", view(Federated(4, 20), has("a", 3, 10, 3, busy(1, 10)), has("b", 1, 10, 3)), "1/3"),
		Entry("not once their share is lent", view(Federated(4, 20, released("a")), has("a", 3, 10, 3, away), has("b", 1, 10, 3)), "3/4"),
		Entry("not once they leave", view(Federated(4, 10), has("a", 2, 5, 3, unselected), has("b", 2, 5, 3)), "-/4"),
		Entry("not if another autoscaler scales there", view(Federated(4, 10), has("a", 3, 5, 3), has("b", 1, 5, 3), but(none("c"), func(c *plan.Cluster) { c.Foreign = plan.Hold{Reason: "NameTaken"} })), "3/1/-"),
		Entry("not if they only wait", view(Federated(4, 4), has("a", 4, 4, 4), none("b")), "4/-"),
	)

	DescribeTable("of clusters that do not scale stay", table,
		Entry("where others rise", view(Federated(8, 20), has("a", 3, 10, 3, inactive), has("b", 3, 10, 3)), "3/5"),
		Entry("where others run more", view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7, inactive)), "3/3"),
		Entry("where they would run fewer", view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1), inactive), has("b", 3, 10, 7)), "3/3"),
		Entry("up to a preference", view(Federated(8, 20, Prefer("a", AtMost(2))), has("a", 3, 10, 3, inactive), has("b", 3, 10, 3)), "2/6"),
	)

	DescribeTable("of clusters that run nothing stay at zero, because their autoscalers would be turned off", table,
		Entry("where the cluster with the minimum leaves", view(Federated(1, 10, allowZero), has("a", 1, 5, 3, unselected), has("b", 0, 5, 0, atZero)), "-/0"),
		Entry("where others can have them", view(Federated(2, 12, allowZero), has("a", 1, 4, 1, unselected), has("b", 0, 4, 0, atZero), has("c", 1, 4, 2)), "-/0/2"),
		Entry("where the minimum is raised", view(Federated(3, 12, allowZero), has("a", 0, 6, 0, atZero), has("b", 0, 6, 0, atZero)), "0/0"),
		Entry("where a cluster shall have one", view(Federated(2, 12, allowZero, Prefer("b", atLeast(2))), has("a", 2, 6, 3), has("b", 0, 6, 0, atZero)), "2/0"),
		Entry("where all shall have one", view(Federated(2, 12), has("a", 1, 6, 3), has("b", 0, 6, 0, atZero)), "2/0"),
		Entry("until they run something", view(Federated(1, 10, allowZero), has("a", 1, 5, 3, unselected), has("b", 0, 5, 1)), "-/1"),
		Entry("but not where they have no workload to scale", view(Federated(1, 10, allowZero), has("a", 1, 5, 3, unselected), has("b", 0, 5, 0, atZero, runs())), "-/1"),
	)

	DescribeTable("move", table,
		Entry("from where they hinder to where they do not", view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7)), "1/5"),
		Entry("as far as is wanted there", view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 4)), "2/4"),
		Entry("as far as they hinder", view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(2)), has("b", 3, 10, 7)), "2/4"),
		Entry("at least by one where it is not known how far they hinder", view(Federated(10, 20, Minima), has("a", 5, 10, 5, wantsLess(7)), has("b", 5, 10, 9)), "4/6"),
		Entry("not below a preference", view(Federated(6, 20, Minima, Prefer("a", atLeast(2))), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7)), "2/4"),
		Entry("not above a preferred maximum", view(Federated(6, 20, Minima, Prefer("b", AtMost(4))), has("a", 3, 16, 3, wantsLess(1)), has("b", 3, 4, 4)), "2/4"),
		Entry("not without the wish", view(Federated(6, 20), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7)), "3/3"),
		Entry("not where all need fewer", view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 3, wantsLess(1))), "3/3"),
		Entry("not where none needs fewer", view(Federated(6, 20, Minima), has("a", 3, 10, 3), has("b", 3, 10, 7)), "3/3"),
		Entry("from several evenly", view(Federated(9, 30, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 3, wantsLess(1)), has("c", 3, 10, 5)), "2/2/5"),
		Entry("on, while the receiver has more already", view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 5, 10, 7)), "1/5"),
		Entry("back to all, if those that need fewer cannot give enough", view(Federated(4, 20, Minima), has("a", 3, 10, 3, wantsLess(2)), has("b", 5, 10, 7)), "2/2"),
	)

	It("wait for a giver to cool down, and say when", func() {
		v := moved(view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7)), "a", time.Minute)
		Expect(least(plan.New(v))).To(Equal("3/3"))
		Expect(plan.New(v).Again).To(Equal(time.Minute))
		v.Now = noon.Add(time.Minute - time.Nanosecond)
		Expect(least(plan.New(v))).To(Equal("3/3"))
		v.Now = noon.Add(time.Minute)
		Expect(least(plan.New(v))).To(Equal("1/5"))
	})

	It("do not wait for a cluster that has nothing to give", func() {
		v := moved(view(Federated(4, 20, Minima), has("a", 1, 10, 1, wantsLess(0)), has("b", 3, 10, 7)), "a", time.Minute)
		Expect(plan.New(v).Again).To(BeZero())
	})
})

// growing is a cluster whose autoscaler has just asked for more replicas and has yet to see them.
func growing(c *plan.Cluster) { c.Local.Current-- }

// The original design moves maximums once CurrentReplicas == DesiredReplicas == MaxReplicas.
var _ = Describe("A cluster that runs its whole maximum", func() {
	DescribeTable("gets more, before its metrics ask for it",
		func(v plan.View, expected string) {
			stuck["stuck"] = true
			Expect(aims(plan.New(v))).To(Equal(expected))
			Expect(carried(&v)).To(BeNumerically("<=", 3))
			Expect(aims(plan.New(v))).To(Equal(expected), "once it has been carried out")
		},
		Entry("from a cluster that needs less", view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 1)), "6/6"),
		Entry("and does not take the headroom of the giver", view(Federated(2, 12, headroom(3)), has("a", 1, 4, 4), has("b", 1, 8, 4)), "5/7"),
		Entry("and one at least, where no headroom is asked for", view(Federated(2, 12, headroom(0), Prefer("a", Tier(1))), has("a", 1, 4, 4), has("b", 1, 8, 1)), "5/7"),
		Entry("from a cluster that cannot use it", isStuck(view(Federated(2, 12), has("a", 1, 2, 2), has("stuck", 1, 10, 10, readyCondition(4)))), "7/5"),
		Entry("up to its preference", view(Federated(2, 12, Prefer("a", AtMost(5))), has("a", 1, 4, 4), has("b", 1, 8, 1)), "5/7"),
		Entry("like others that run theirs", view(Federated(3, 12), has("a", 1, 2, 2), has("b", 1, 2, 2), has("c", 1, 8, 1)), "4/4/4"),
		Entry("after what metrics ask for elsewhere", view(Federated(3, 12), has("a", 1, 2, 2), has("b", 1, 2, 2, wants(9)), has("c", 1, 8, 1)), "3/7/2"),
	)

	DescribeTable("gets nothing",
		func(v plan.View) {
			p := plan.New(v)
			Expect(p.Orders).To(BeEmpty())
			Expect(p.Missing).To(BeZero())
		},
		Entry("if all run theirs", view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 8))),
		Entry("if the other one keeps headroom only", view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 7))),
		Entry("if the others keep headroom only, whatever they wish", view(Federated(3, 20, headroom(5)), has("a", 1, 4, 4), has("b", 1, 8, 4), has("c", 1, 8, 4))),
		Entry("if its minimum makes it run them", view(Federated(5, 12), has("a", 4, 4, 4, wantsLess(2)), has("b", 1, 8, 1))),
		Entry("if it has as much as it may have", view(Federated(2, 12, Prefer("a", AtMost(4))), has("a", 1, 4, 4), has("b", 1, 8, 1))),
		Entry("if it does not scale", view(Federated(2, 12), has("a", 1, 4, 4, inactive), has("b", 1, 8, 1))),
		Entry("if its workload is gone", view(Federated(2, 12), has("a", 1, 4, 4, deleted), has("b", 1, 8, 1))),
		Entry("if it is stuck itself", isStuck(view(Federated(2, 12), has("stuck", 1, 4, 4, readyCondition(2)), has("b", 1, 8, 1)))),
		Entry("if it has yet to run them", view(Federated(2, 12), has("a", 1, 4, 4, growing), has("b", 1, 8, 1))),
		Entry("if it has not seen its new maximum", view(Federated(2, 12), has("a", 1, 4, 3), has("b", 1, 8, 1))),
		Entry("until the giver has cooled down", moved(view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 1)), "b", time.Minute)),
	)

	It("is looked at again once the giver has cooled down", func() {
		v := moved(view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 1)), "b", time.Minute)
		Expect(plan.New(v).Again).To(Equal(time.Minute))
	})

	It("does not make another cluster join", func() {
		v := view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(6))), has("a", 1, 6, 6), none("b"))
		Expect(aims(plan.New(v))).To(Equal("6/-"))
	})

	It("leaves, though it runs its whole maximum of one", func() {
		v := view(Federated(1, 10, Strict, OnDemand), has("a", 1, 9, 3), has("b", 1, 1, 1))
		entry(&v, "b").OnDemand, entry(&v, "b").QuietSince = true, ago(time.Hour)
		Expect(orders(plan.New(v))).To(Equal([]string{"b gone"}))
	})

	It("swaps nothing with another one that does, whatever their tiers and weights", func() {
		for _, prefer := range []func(*v1alpha1.ClusterPreference){Tier(1), Weight(9), func(p *v1alpha1.ClusterPreference) { p.MinReplicas = ptr.To[int32](2) }} {
			v := view(Federated(3, 9, Prefer("b", prefer)), has("a", 1, 4, 4), has("b", 2, 5, 5))
			Expect(carried(&v)).To(BeZero())
			Expect(aims(plan.New(v))).To(Equal("4/5"))
		}
	})
})

func headroom(n int32) func(*Spec) { return func(s *Spec) { Rebalance(s).Headroom = ptr.To(n) } }
