// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// sawVersion is a ledger in which the autoscaler of a cluster had these bounds in a version.
func sawVersion(version string, lo, hi int32) func(*v1alpha1.ClusterStatus) {
	return func(s *v1alpha1.ClusterStatus) {
		confirmed(lo, hi)(s)
		s.ConfirmedVersion = version
	}
}

// shows is a cluster whose autoscalers are known up to a version.
func shows(version string) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.Shown = version }
}

func verified(version string) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.Verified = version }
}

// ledgerOf returns the line of the next ledger about a cluster.
func ledgerOf(v plan.View, name string) v1alpha1.ClusterStatus {
	for _, s := range status(v, plan.New(v)).Clusters {
		if s.Name == name {
			return s
		}
	}
	Fail("the ledger has no line about " + name)
	return v1alpha1.ClusterStatus{}
}

var _ = Describe("A cluster that shows an older state than the ledger has", func() {
	old := func(change ...func(*plan.Cluster)) plan.View {
		return remembers(view(Federated(3, 30), has("a", 2, 10, 10, append(change, wants(20))...), has("b", 1, 20, 5)), "a", sawVersion("200", 1, 12))
	}

	It("counts with what it may have by either, and is left alone until it shows the later state", func() {
		v := old()
		p := plan.New(v)
		Expect(p.Clusters[0].Confirmed).To(Equal(plan.Bounds{Min: 1, Max: 12}))
		Expect(p.Clusters[0].Counted).To(Equal(plan.Bounds{Min: 1, Max: 12}))
		Expect(p.Clusters[0].UnseenVersion()).To(Equal("200"))
		Expect(p.Clusters[1].UnseenVersion()).To(BeEmpty())
		Expect(orders(p)).To(Equal([]string{"b 2..18"}), "only the other one")
		Expect(status(v, p).Clusters[0].ConfirmedVersion).To(Equal("200"))
	})

	It("counts with its own bounds where these are wider", func() {
		v := remembers(view(Federated(3, 30), has("a", 1, 12, 10), has("b", 1, 18, 5)), "a", sawVersion("200", 2, 10))
		Expect(plan.New(v).Clusters[0].Confirmed).To(Equal(plan.Bounds{Min: 1, Max: 12}))
	})

	It("is looked at again after five seconds, or once it is in reach", func() {
		v := view(Federated(3, 30), has("a", 2, 12, 10), has("b", 1, 18, 5))
		remembers(v, "a", sawVersion("200", 2, 12))
		Expect(plan.New(v).Again).To(Equal(5 * time.Second))
		v.Clusters[0].Reachable = false
		Expect(plan.New(v).Again).To(BeZero())
	})

	It("settles nothing that was sent", func() {
		v := remembers(old(), "a", outstanding(1, 18, "99"))
		Expect(plan.New(v).Clusters[0].Counted.Max).To(BeEquivalentTo(18))
		Expect(ledgerOf(v, "a").Outstanding).NotTo(BeNil())
	})

	DescribeTable("is up to date",
		func(c plan.Cluster) {
			p := plan.New(remembers(view(Federated(1, 30), c), "a", sawVersion("200", 1, 12)))
			Expect(p.Clusters[0].UnseenVersion()).To(BeEmpty())
		},
		Entry("once it shows that version", has("a", 2, 10, 10, func(c *plan.Cluster) { c.Local.Version = "200" })),
		Entry("once it shows a later one", has("a", 2, 10, 10, func(c *plan.Cluster) { c.Local.Version = "201" })),
		Entry("if that version certainly no longer exists", has("a", 2, 10, 10, verified("200"))),
		Entry("without an autoscaler, once it shows a later state", but(none("a"), shows("201"))),
		Entry("without an autoscaler, if that version certainly no longer exists", but(none("a"), shows("100"), verified("200"))),
		Entry("as far as anybody knows, while nothing is known of it", but(none("a"), silent, shows("100"))),
	)

	DescribeTable("is not up to date",
		func(c plan.Cluster, counted plan.Bounds) {
			p := plan.New(remembers(view(Federated(1, 30), c), "a", sawVersion("200", 1, 12)))
			Expect(p.Clusters[0].UnseenVersion()).To(Equal("200"))
			Expect(p.Clusters[0].Counted).To(Equal(counted))
			Expect(orders(p)).To(BeEmpty())
		},
		Entry("with an earlier version", has("a", 2, 10, 10), plan.Bounds{Min: 1, Max: 12}),
		Entry("if another version no longer exists", has("a", 2, 10, 10, verified("150")), plan.Bounds{Min: 1, Max: 12}),
		Entry("without an autoscaler, in an earlier state", but(none("a"), shows("100")), plan.Bounds{Min: 0, Max: 12}),
	)

	DescribeTable("versions are compared",
		func(a, b string, newer bool) { Expect(plan.IsNewer(a, b)).To(Equal(newer)) },
		Entry("as numbers", "1000", "999", true),
		Entry("older", "999", "1000", false),
		Entry("equal", "999", "999", false),
		Entry("not if one is missing", "999", "", false),
		Entry("not if one is no number", "b", "a", false),
	)
})

var _ = Describe("An order in the ledger", func() {
	DescribeTable("counts until it cannot take effect any more",
		func(c plan.Cluster, say func(*v1alpha1.ClusterStatus), counted int) {
			v := remembers(view(Federated(2, 30, paused), c), "a", say)
			Expect(plan.New(v).Clusters[0].Counted.Max).To(BeEquivalentTo(counted))
		},
		Entry("it is on its way, though its base is gone", has("a", 1, 10, 3, busy(1, 18)), outstanding(1, 18, "99"), 18),
		Entry("its base is gone", has("a", 1, 10, 3), outstanding(1, 18, "99"), 10),
		Entry("its base is there", has("a", 1, 10, 3), outstanding(1, 18, "100"), 18),
		Entry("its base is yet to be seen", has("a", 1, 10, 3), outstanding(1, 18, "101"), 18),
		Entry("it was a creation, and there is an autoscaler", has("a", 1, 10, 3), outstanding(1, 18, ""), 10),
		Entry("it was a creation, and there is none yet", none("a"), outstanding(1, 18, ""), 18),
		Entry("its base is gone together with the autoscaler", none("a"), outstanding(1, 18, "100"), 0),
		Entry("nothing is known of the cluster", but(none("a"), silent), outstanding(1, 18, "100"), 18),
		Entry("another write was refused", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Rejected = 3 }), outstanding(1, 18, "100"), 18),
		Entry("no write was refused, and the ledger does not number it", has("a", 1, 10, 3),
			func(s *v1alpha1.ClusterStatus) { outstanding(1, 18, "100")(s); s.Epoch = 0 }, 18),
		Entry("the first write was refused", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Rejected = 1 }),
			func(s *v1alpha1.ClusterStatus) { outstanding(1, 18, "100")(s); s.Epoch = 1 }, 10),
		Entry("it is less than what the cluster has", has("a", 1, 10, 3), outstanding(1, 8, "100"), 10),
	)

	It("counts with its minimum where that is lower", func() {
		v := remembers(view(Federated(2, 30, paused), has("a", 3, 10, 3)), "a", outstanding(2, 10, "100"))
		Expect(plan.New(v).Clusters[0].Counted.Min).To(BeEquivalentTo(2))
		entry(&v, "a").Outstanding.MinReplicas = 5
		Expect(plan.New(v).Clusters[0].Counted.Min).To(BeEquivalentTo(3))
	})

	It("counts with what the cluster had, while it is out of reach", func() {
		Expect(aims(plan.New(view(Federated(1, 10), has("a", 1, 10, 3, away, busy(1, 3)))))).To(Equal("10"))
	})

	It("no longer matters once it is answered", func() {
		answered := func(c *plan.Cluster) { c.Sent = noon }
		Expect(aims(plan.New(view(Federated(1, 10), has("a", 1, 10, 3, pausing, answered))))).To(Equal("10"))
	})

	It("widens with each that follows on the same base", func() {
		v := remembers(view(Federated(4, 8), has("a", 3, 10, 10)), "a", outstanding(2, 9, "100"))
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"a 4..8"}))
		Expect(status(v, p).Clusters[0].Outstanding).To(Equal(&v1alpha1.Outstanding{MinReplicas: 2, MaxReplicas: 9, Base: "100", Repeated: true}))
	})
})

var _ = Describe("The time since when a cluster has been out of reach", func() {
	DescribeTable("is kept in the ledger, in whole seconds",
		func(c plan.Cluster, before, after *metav1.Time) {
			v := view(Federated(1, 10), c)
			v.Now = noon.Add(300 * time.Millisecond)
			entry(&v, "a").UnreachableSince = before
			Expect(ledgerOf(v, "a").UnreachableSince).To(Equal(after))
		},
		Entry("since it last answered", has("a", 1, 10, 3, away, func(c *plan.Cluster) { c.Since = noon.Add(-59700 * time.Millisecond) }), nil, ago(time.Minute)),
		Entry("since now, if it is unknown when it last answered", has("a", 1, 10, 3, away, func(c *plan.Cluster) { c.Since = time.Time{} }), nil, ago(0)),
		Entry("since what the ledger says", has("a", 1, 10, 3, away), ago(time.Hour), ago(time.Hour)),
		Entry("not once it answers", has("a", 1, 10, 3), ago(time.Hour), nil),
		Entry("not before it can have answered", but(none("a"), starting), nil, nil),
		Entry("since what the ledger says, also before it can have answered again", but(none("a"), starting), ago(time.Hour), ago(time.Hour)),
	)

	lending := func(s *Spec) {
		s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](600)}
	}
	releasing := func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"a"}} }
	unreachableFor := func(v plan.View, d time.Duration) plan.View {
		entry(&v, "a").UnreachableSince = ago(d)
		return v
	}

	DescribeTable("lends its share",
		func(v plan.View, lent bool, again time.Duration) {
			p := plan.New(v)
			Expect(p.Clusters[0].Lent).To(Equal(lent))
			Expect(p.Again).To(Equal(again))
		},
		Entry("not before the time", unreachableFor(view(Federated(1, 10, lending), has("a", 1, 10, 3, away)), 599*time.Second), false, time.Second),
		Entry("after the time", unreachableFor(view(Federated(1, 10, lending), has("a", 1, 10, 3, away)), 600*time.Second), true, time.Duration(0)),
		Entry("not without that policy", unreachableFor(view(Federated(1, 10), has("a", 1, 10, 3, away)), time.Minute), false, time.Duration(0)),
		Entry("not without that policy, though a time is set", unreachableFor(view(Federated(1, 10, func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{AfterSeconds: ptr.To[int32](600)} }), has("a", 1, 10, 3, away)), time.Minute), false, time.Duration(0)),
		Entry("not without a share", unreachableFor(view(Federated(1, 10, lending), but(none("a"), away)), time.Minute), false, time.Duration(0)),
		Entry("not without a share, however long", unreachableFor(view(Federated(1, 10, lending), but(none("a"), away)), time.Hour), false, time.Duration(0)),
		Entry("at once if it was released", unreachableFor(view(Federated(1, 10, releasing), has("a", 1, 10, 3, away)), 0), true, time.Duration(0)),
		Entry("not if it was released and answers", view(Federated(1, 10, releasing), has("a", 1, 10, 3)), false, time.Duration(0)),
	)
})

var _ = Describe("Replicas that do not become ready", func() {
	waiting := func(v plan.View, before *metav1.Time) plan.View {
		v.Now = noon.Add(300 * time.Millisecond)
		entry(&v, "a").NotReadySince = before
		return v
	}

	DescribeTable("are timed in whole seconds",
		func(c plan.Cluster, before, after *metav1.Time) {
			Expect(ledgerOf(waiting(view(Federated(1, 10), c), before), "a").NotReadySince).To(Equal(after))
		},
		Entry("from now on", has("a", 1, 10, 3, readyCondition(2)), nil, ago(0)),
		Entry("since the ledger says", has("a", 1, 10, 3, readyCondition(2)), ago(time.Hour), ago(time.Hour)),
		Entry("not once all are ready", has("a", 1, 10, 3), ago(time.Hour), nil),
		Entry("not where they are not counted", has("a", 1, 10, 3, readyCondition(2), func(c *plan.Cluster) { c.Workload.Counted = false }), ago(time.Hour), nil),
		Entry("where the workload is missing", has("a", 1, 10, 3, deleted), nil, ago(0)),
		Entry("as before while the cluster is out of reach", has("a", 1, 10, 3, away), ago(time.Hour), ago(time.Hour)),
		Entry("no longer, once the autoscaler is gone", but(none("a"), pausing), ago(time.Hour), nil),
		Entry("no longer, where an autoscaler that is gone is created again", none("a"), ago(time.Hour), nil),
	)

	DescribeTable("are said after the start timeout",
		func(before time.Duration, reason string, again time.Duration) {
			v := view(Federated(1, 10), has("a", 1, 10, 3, readyCondition(2)))
			entry(&v, "a").NotReadySince = ago(before)
			Expect(ledgerOf(v, "a").Reason).To(Equal(reason))
			Expect(plan.New(v).Again).To(Equal(again))
		},
		Entry("before it", 4*time.Minute+59*time.Second, "", time.Second),
		Entry("at its end", 5*time.Minute, "Stuck", time.Duration(0)),
	)

	It("are not waited for while the cluster is out of reach", func() {
		v := view(Federated(1, 10), has("a", 1, 10, 3, away))
		entry(&v, "a").NotReadySince = ago(time.Minute)
		Expect(plan.New(v).Again).To(BeZero())
	})
})

var _ = Describe("A time in the ledger that lies ahead, since the clock of another hub did", func() {
	ahead := ago(-24 * time.Hour)

	It("does not keep a cluster from giving for longer than its cooldown", func() {
		v := moved(view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "b", -24*time.Hour)
		v.Object.Spec.Paused = true
		p := plan.New(v)
		Expect(p.Again).To(Equal(2 * time.Minute))
		v.Object.Status = status(v, p)
		v.Now = noon.Add(2 * time.Minute)
		Expect(aims(plan.New(v))).To(Equal("10/2"))
	})

	It("does not keep a cluster that is used on demand for longer than it is to be quiet", func() {
		v := onDemand(view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 1)), "b", -24*time.Hour)
		Expect(plan.New(v).Again).To(Equal(10 * time.Minute))
		Expect(ledgerOf(v, "b").QuietSince).To(Equal(ago(0)))
	})

	It("does not keep a deleted object for longer than a creation may be on its way", func() {
		v := deletedObject(view(Federated(1, 10), but(none("a"), taken)))
		entry(&v, "a").RemovableAfter, entry(&v, "a").Epoch = ahead, 1
		p := plan.New(v)
		Expect(p.Gone).To(BeFalse())
		Expect(p.Again).To(Equal(plan.CreationLife))
	})

	It("counts as now", func() {
		v := remembers(view(Federated(2, 12, OnDemand), has("a", 1, 6, 6, away), has("b", 1, 6, 6, readyCondition(2))), "a", func(s *v1alpha1.ClusterStatus) {
			s.UnreachableSince = ahead.DeepCopy()
		})
		entry(&v, "b").NotReadySince = ahead.DeepCopy()
		Expect(ledgerOf(v, "a").UnreachableSince).To(Equal(ago(0)))
		Expect(ledgerOf(v, "b").NotReadySince).To(Equal(ago(0)))
	})
})
