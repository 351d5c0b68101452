// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

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
