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

// atLeast is a preferred minimum.
func atLeast(n int32) func(*v1alpha1.ClusterPreference) {
	return func(p *v1alpha1.ClusterPreference) { p.MinReplicas = ptr.To(n) }
}

func allowZero(s *Spec) { s.MinPolicy = v1alpha1.AllowZero }

// onDemand is a view in which a cluster has joined on demand, and is not needed since a time.
func onDemand(v plan.View, name string, quiet ...time.Duration) plan.View {
	e := entry(&v, name)
	e.OnDemand = true
	for _, d := range quiet {
		e.QuietSince = ago(d)
	}
	return v
}

// absentUnknown is a cluster that answers, but whose autoscaler is not known yet.
func absentUnknown(c *plan.Cluster) { c.Absent = false }

var _ = Describe("Clusters", func() {
	DescribeTable("that cannot be used get nothing",
		func(change func(*plan.Cluster)) {
			Expect(aims(plan.New(view(Federated(1, 10, Strict), but(none("a"), change), none("b"))))).To(Equal("-/10"))
		},
		Entry("after a failure, for a while", pausing),
		Entry("before their autoscaler is known", absentUnknown),
		Entry("if they are not selected", unselected),
		Entry("if they refuse", refusing),
		Entry("if they are out of reach", away),
		Entry("if another autoscaler scales there", func(c *plan.Cluster) { c.Foreign = plan.Hold{Reason: "NameTaken"} }),
	)

	DescribeTable("that are lost keep their place",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("while they are out of reach", view(Federated(1, 10, Strict), has("a", 1, 5, 3, away), none("b")), "5/-"),
		Entry("while they are not registered", remembers(view(Federated(1, 10, Strict), plan.Cluster{Name: "a"}, none("b")), "a", confirmed(1, 5)), "5/-"),
		Entry("if another client has removed their autoscaler, as their workload shows", view(Federated(1, 10, Strict), none("a"), but(none("b"), runs(exists, ours))), "-/10"),
		Entry("but not before those of a lower tier", view(Federated(1, 10, Strict, Prefer("b", Tier(1))), none("a"), but(none("b"), runs(exists, ours))), "10/-"),
		Entry("until their share is lent", view(Federated(1, 10, Strict, released("a")), has("a", 1, 5, 3, away), none("b")), "5/10"),
	)

	DescribeTable("stay or leave when the maximum has too little room",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("for one each", view(Federated(1, 2), has("a", 1, 1, 1), has("b", 1, 1, 1), has("c", 1, 1, 1)), "1/1/-"),
		Entry("besides one out of reach, which keeps its own", view(Federated(1, 5), has("a", 1, 4, 3, away), has("b", 1, 1, 1), has("c", 1, 1, 1)), "4/1/-"),
		Entry("besides one out of reach that is leaving", view(Federated(1, 5), has("a", 1, 4, 3, away, unselected), has("b", 1, 1, 1), has("c", 1, 1, 1)), "4/1/-"),
		Entry("besides one out of reach that keeps too much", view(Federated(1, 5), has("a", 1, 8, 3, away), has("b", 1, 1, 1)), "8/-"),
		Entry("where the share of one out of reach is lent", view(Federated(1, 2, released("a")), has("a", 1, 4, 3, away), has("b", 1, 1, 1), has("c", 1, 1, 1)), "4/1/1"),
	)

	DescribeTable("join as far as there are replicas that no cluster runs",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("one of two", view(Federated(2, 10), has("a", 1, 10, 9), none("b"), none("c")), "9/1/-"),
		Entry("the one of the lower tier", view(Federated(2, 10, Prefer("b", Tier(1))), has("a", 1, 10, 9), none("b"), none("c")), "9/-/1"),
		Entry("both", view(Federated(2, 10), has("a", 1, 10, 8), none("b"), none("c")), "8/1/1"),
		Entry("not from the maximum of one out of reach", view(Federated(2, 10), has("a", 1, 6, 1, away), has("b", 1, 4, 4), none("c")), "6/4/-"),
		Entry("not from what one out of reach has, though another may give", view(Federated(2, 10), has("a", 1, 6, 1, away), has("b", 1, 4, 3), none("c")), "6/3/1"),
		Entry("from what one out of reach has lent", view(Federated(2, 10, released("a")), has("a", 1, 10, 10, away), none("b")), "10/10"),
		Entry("not from a preferred minimum", view(Federated(2, 10, Prefer("a", atLeast(9))), has("a", 9, 10, 0), none("b"), none("c")), "9/1/-"),
		Entry("from what is beyond a preferred minimum, which its maximum limits", view(Federated(2, 10, Prefer("a", between(8, 5))), has("a", 5, 5, 5), none("b"), none("c"), none("d")), "5/2/2/1"),
		Entry("not from the one replica that a cluster may need at any time", view(Federated(1, 2), has("a", 1, 2, 0), none("b"), none("c")), "1/1/-"),
		Entry("from replicas that do not become ready", since(view(Federated(2, 10), has("a", 1, 10, 10, readyCondition(2)), none("b")), "a", time.Hour), "3/7"),
		Entry("not from replicas that may yet become ready", view(Federated(2, 10), has("a", 1, 10, 10, readyCondition(2)), none("b")), "10/-"),
		Entry("from what a reduction on its way leaves", view(Federated(2, 10), has("a", 1, 10, 3, busy(1, 6)), none("b")), "6/4"),
	)

	DescribeTable("wait, and say so",
		func(v plan.View, expected string) { Expect(string(ledgerOf(v, "c").State)).To(Equal(expected)) },
		Entry("if the maximum is too small for one each", view(Federated(1, 2), none("a"), none("b"), none("c")), "Waiting"),
		Entry("if others run all of it", view(Federated(1, 10), has("a", 1, 10, 10), none("c")), "Waiting"),
		Entry("not if they have an autoscaler, which leaves", view(Federated(1, 2), has("a", 1, 1, 1), has("b", 1, 1, 1), has("c", 1, 1, 1)), "Leaving"),
		Entry("not if they are not wanted", view(Federated(1, 10, Strict), has("a", 1, 10, 10), none("c")), "Idle"),
	)

	DescribeTable("that have never answered keep others from joining",
		func(first plan.Cluster, expected string) {
			Expect(aims(plan.New(view(Federated(1, 10), first, none("b"))))).To(Equal(expected))
		},
		Entry("for a moment", but(none("a"), starting), "-/-"),
		Entry("not if they are not selected", but(none("a"), starting, unselected), "-/10"),
	)

	It("that are not selected but may have an autoscaler keep others from joining, too, until they have answered", func() {
		v := remembers(view(Federated(1, 10), but(none("a"), starting, unselected), none("b")), "a", confirmed(1, 5))
		Expect(orders(plan.New(v))).To(BeEmpty())
	})
})

var _ = Describe("Clusters on demand", func() {
	full := func(change ...func(*Spec)) plan.View {
		all := append([]func(*Spec){Strict, OnDemand, Prefer("a", AtMost(6))}, change...)
		return view(Federated(1, 10, all...), has("a", 1, 6, 6, wants(20)), none("b"), none("c"))
	}

	It("join one at a time, and the ledger says that they are only there on demand", func() {
		v := onDemand(full(), "b", time.Hour)
		p := plan.New(v)
		Expect(aims(p)).To(Equal("6/4/-"))
		s := status(v, p)
		Expect(s.Clusters[1].OnDemand).To(BeTrue())
		Expect(s.Clusters[1].QuietSince).To(BeNil())
		Expect(s.Clusters[0].OnDemand).To(BeFalse())
	})

	DescribeTable("join",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("by tier", full(Prefer("b", Tier(1))), "6/-/4"),
		Entry("for the last replica", view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(9))), has("a", 1, 9, 9, wants(20)), none("b")), "9/1"),
		Entry("not while those that are wanted join", view(Federated(2, 10, Strict, OnDemand), none("a"), none("b"), none("c")), "5/5/-"),
		Entry("not while one can get more", view(Federated(2, 10, Strict, OnDemand, Prefer("a", AtMost(4))), has("a", 1, 4, 4, wants(8)), has("b", 1, 4, 4, wants(8)), none("c")), "4/6/-"),
		Entry("not while one is at its own maximum and needs no more", view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(6))), has("a", 1, 6, 6), none("b")), "6/-"),
		Entry("before one that is used on demand is wanted no more", onDemand(view(Federated(2, 10, Strict, OnDemand), has("a", 1, 5, 3), none("b"), has("c", 1, 5, 1)), "c"), "5/-/5"),
	)

	It("are no longer on demand when a higher minimum asks for them", func() {
		v := onDemand(view(Federated(2, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 1)), "b", time.Minute)
		Expect(ledgerOf(v, "b").OnDemand).To(BeFalse())
		Expect(ledgerOf(v, "b").QuietSince).To(BeNil())
	})

	It("go again, even where no replica is left, if their autoscaler does not exist yet", func() {
		v := view(Federated(2, 10, Strict, OnDemand), has("a", 1, 5, 5), has("b", 1, 5, 5), none("c"))
		v = onDemand(remembers(v, "c", outstanding(1, 1, "")), "c")
		Expect(ledgerOf(v, "c").QuietSince).To(Equal(ago(0)))
	})

	It("stay on demand while one that is wanted anyway is there", func() {
		v := onDemand(view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 3)), "a")
		Expect(ledgerOf(v, "a").OnDemand).To(BeTrue())
		Expect(ledgerOf(v, "b").OnDemand).To(BeFalse())
	})

	It("are those beyond the minimum once it falls", func() {
		v := view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 3))
		Expect(ledgerOf(v, "b").OnDemand).To(BeTrue())
		Expect(aims(plan.New(v))).To(Equal("5/5"))
	})

	DescribeTable("are needed",
		func(v plan.View, needed bool) {
			v = onDemand(v, "b")
			Expect(ledgerOf(v, "b").QuietSince == nil).To(Equal(needed))
			Expect(aims(plan.New(v))).NotTo(ContainSubstring("-"))
		},
		Entry("not if others can run their replica", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 1)), false),
		Entry("if they run two", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 2)), true),
		Entry("if they ask for more", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 9, 3), has("b", 1, 1, 1, wants(3))), true),
		Entry("as far as anybody knows, after a failure", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 1, pausing)), true),
		Entry("if the other one asks for more", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 5, wants(7)), has("b", 1, 5, 1)), true),
		Entry("if the other one is stuck", since(view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3, readyCondition(1)), has("b", 1, 5, 1)), "a", time.Hour), true),
		Entry("if the other one cannot be changed now", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3, pausing), has("b", 1, 5, 1)), true),
		Entry("if the other one may not have more", view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(3))), has("a", 1, 3, 3), has("b", 1, 7, 1)), true),
		Entry("not if the other one may have exactly one more", view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(4))), has("a", 1, 4, 3), has("b", 1, 6, 1)), false),
		Entry("if all others may have no more together", view(Federated(2, 6, Strict, OnDemand), has("a", 1, 3, 3), has("b", 1, 1, 1), has("aa", 1, 3, 3)), true),
		Entry("if one of the others is beyond its own maximum, which does not count for another", view(Federated(2, 12, Strict, OnDemand, Prefer("a", AtMost(2)), Prefer("aa", AtMost(4))), has("a", 1, 4, 3), has("b", 1, 4, 1), has("aa", 1, 4, 3)), false),
		Entry("not if they run nothing, and the other one may have no more", view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(3))), has("a", 1, 3, 3), has("b", 1, 7, 0)), false),
		Entry("if no other is left", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 10, 3, unselected, away), has("b", 1, 2, 0)), true),
	)

	It("leave after exactly the quiet time", func() {
		v := onDemand(view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 1)), "b", 10*time.Minute)
		v.Now = noon.Add(-time.Nanosecond)
		Expect(aims(plan.New(v))).To(Equal("5/5"))
		v.Now = noon
		Expect(orders(plan.New(v))).To(Equal([]string{"b gone"}))
	})

	It("count their quiet time from the first moment, in whole seconds", func() {
		v := onDemand(view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 1)), "b")
		v.Now = noon.Add(300 * time.Millisecond)
		Expect(ledgerOf(v, "b").QuietSince).To(Equal(ago(0)))
	})
})
