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
