// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

var _ = Describe("Status", func() {
	state := func(v plan.View, name string) string {
		for _, c := range status(v, plan.New(v)).Clusters {
			if c.Name == name {
				return string(c.State) + " " + c.Reason
			}
		}
		return "absent"
	}

	DescribeTable("says what a cluster is",
		func(expected string, c plan.Cluster) {
			Expect(state(view(Federated(1, 10), c), "a")).To(Equal(expected))
		},
		func(expected string, _ plan.Cluster) string { return expected },
		Entry(nil, "Used ", has("a", 1, 10, 3)),
		Entry(nil, "Joining ", none("a")),
		Entry(nil, "Frozen FailedGetResourceMetric", has("a", 1, 10, 3, inactive)),
		Entry(nil, "Unreachable NoContact", has("a", 1, 10, 3, away)),
		Entry(nil, "Unreachable ListRefused", has("a", 1, 10, 3, away, func(c *plan.Cluster) { c.Fault = plan.Hold{Reason: "ListRefused"} })),
		Entry(nil, "Refused RefusedForbidden", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Fault = plan.Hold{Reason: "RefusedForbidden"} })),
		Entry(nil, "Refused AutoscaledTwice", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Foreign = plan.Hold{Reason: "AutoscaledTwice"} })),
		Entry(nil, "Leaving ", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Selected = false })),
		Entry(nil, "Unreachable NotRegistered", has("a", 1, 10, 3, away, func(c *plan.Cluster) { c.Registered, c.Selected = false, false })),
		Entry(nil, "absent", func() plan.Cluster { c := none("a"); c.Selected = false; return c }()),
	)

	It("adds up what is known, and lets no plan without change look like one", func() {
		v := view(Federated(2, 20), has("a", 1, 12, 5), has("b", 1, 8, 3, readyCondition(2)))
		v.Object.Status = status(v, plan.New(v))
		s := v.Object.Status
		Expect([]int32{s.CurrentReplicas, s.DesiredReplicas, s.ReadyReplicas, s.MinReplicas, s.MaxReplicas, s.CountedReplicas}).To(Equal([]int32{8, 8, 7, 2, 20, 20}))
		v.Now = noon.Add(5e9)
		Expect(status(v, plan.New(v))).To(Equal(s), "time alone changes nothing")
	})

	It("has all conditions, sorted, with the generation", func() {
		s := status(view(Federated(2, 20), none("a")), plan.New(view(Federated(2, 20), none("a"))))
		var types []string
		for _, c := range s.Conditions {
			Expect(c.ObservedGeneration).To(BeEquivalentTo(3))
			Expect(c.Message).NotTo(BeEmpty())
			types = append(types, c.Type)
		}
		Expect(types).To(Equal([]string{"Balanced", "ClustersUnreachable", "JoiningBlocked", "Limited", "MinExceeded", "OverCommitted", "Ready", "ReplicasLeft"}))
	})

	It("is ready with no cluster to use only if it says so", func() {
		v := view(Federated(1, 10))
		Expect(condition(v, v1alpha1.ConditionReady)).To(Equal("False NoClusters"))
	})

	DescribeTable("says what a cluster is for",
		func(expected string, v plan.View) { Expect(state(v, "a")).To(Equal(expected)) },
		Entry("nothing, while others are enough", "Idle ", view(Federated(1, 10, Strict), none("a"), has("b", 1, 10, 3))),
		Entry("nothing, for lack of room", "Waiting NoRoom", view(Federated(2, 10), none("a"), has("b", 1, 10, 10))),
		Entry("nothing, though it has a part that is being removed", "Leaving ", view(Federated(1, 10, Strict), has("a", 1, 5, 3, func(c *plan.Cluster) { c.Selected = false }), none("b"))),
		Entry("its share, which does not become ready", "Used Stuck", since(view(Federated(1, 10), has("a", 1, 10, 3, readyCondition(1))), "a", time.Hour)),
		Entry("its share, of which nothing exists", "Used NoWorkload", since(view(Federated(1, 10), has("a", 1, 10, 3, deleted)), "a", time.Hour)),
		Entry("its share, kept though it is no longer registered", "Unreachable NotRegistered", remembers(view(Federated(1, 10), plan.Cluster{Name: "a"}), "a", confirmed(1, 10))),
		Entry("nothing any more, since it was released", "absent", remembers(view(Federated(1, 10, released("a")), plan.Cluster{Name: "a"}), "a", confirmed(1, 10))),
		Entry("its share, though it was released, since it is registered", "Used ", view(Federated(1, 10, released("a")), has("a", 1, 10, 3))),
		Entry("its share, though another was released", "Unreachable NotRegistered", remembers(view(Federated(1, 10, released("b")), plan.Cluster{Name: "a"}), "a", confirmed(1, 10))),
		Entry("joining, though its workload is refused", "Joining WorkloadRefused", view(Federated(1, 10), but(none("a"), func(c *plan.Cluster) { c.Workload.Fault = plan.Hold{Reason: "WorkloadRefused"} }))),
	)

	DescribeTable("shows what a cluster runs and asks for",
		func(c plan.Cluster, expected v1alpha1.ClusterStatus) {
			v := view(Federated(1, 10), c)
			*entry(&v, "a") = v1alpha1.ClusterStatus{Name: "a", ConfirmedMinReplicas: 1, ConfirmedMaxReplicas: 10, CurrentReplicas: 21, DesiredReplicas: 22, ReadyReplicas: 23, LimitedBy: "Max", Demand: 24}
			s := status(v, plan.New(v)).Clusters[0]
			Expect(v1alpha1.ClusterStatus{CurrentReplicas: s.CurrentReplicas, DesiredReplicas: s.DesiredReplicas, ReadyReplicas: s.ReadyReplicas, LimitedBy: s.LimitedBy, Demand: s.Demand}).To(Equal(expected))
		},
		Entry("within its bounds", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Local.Current, c.Workload.Ready = 4, 2 }),
			v1alpha1.ClusterStatus{CurrentReplicas: 4, DesiredReplicas: 3, ReadyReplicas: 2}),
		Entry("at its maximum", has("a", 1, 10, 10, wants(15)), v1alpha1.ClusterStatus{CurrentReplicas: 10, DesiredReplicas: 10, ReadyReplicas: 10, LimitedBy: "Max", Demand: 15}),
		Entry("at its minimum", has("a", 5, 10, 5, wantsLess(2)), v1alpha1.ClusterStatus{CurrentReplicas: 5, DesiredReplicas: 5, ReadyReplicas: 5, LimitedBy: "Min"}),
		Entry("at its maximum, but it does not scale", has("a", 1, 10, 10, wants(15), inactive), v1alpha1.ClusterStatus{CurrentReplicas: 10, DesiredReplicas: 10, ReadyReplicas: 10, LimitedBy: "Max"}),
		Entry("of a workload that is missing", has("a", 1, 10, 10, wants(15), deleted), v1alpha1.ClusterStatus{DesiredReplicas: 10}),
		Entry("as before, while it is out of reach", has("a", 1, 10, 3, away), v1alpha1.ClusterStatus{CurrentReplicas: 21, DesiredReplicas: 22, ReadyReplicas: 23, LimitedBy: "Max", Demand: 24}),
		Entry("as before, while nothing is known", but(none("a"), silent), v1alpha1.ClusterStatus{CurrentReplicas: 21, DesiredReplicas: 22, ReadyReplicas: 23, LimitedBy: "Max", Demand: 24}),
		Entry("nothing, once the autoscaler is gone", but(none("a"), pausing), v1alpha1.ClusterStatus{}),
	)

	It("shows the bounds that a cluster has, and those that it is to have", func() {
		v := view(Federated(2, 20), has("a", 3, 9, 5), has("b", 1, 10, 3))
		s := ledgerOf(v, "a")
		Expect([]int32{s.ConfirmedMinReplicas, s.ConfirmedMaxReplicas}).To(Equal([]int32{3, 9}))
		Expect([]int32{s.MinReplicas, s.MaxReplicas}).To(Equal([]int32{1, 10}))
	})

	DescribeTable("remembers in which version it saw the bounds of a cluster",
		func(c plan.Cluster, before func(*v1alpha1.ClusterStatus), expected string) {
			Expect(ledgerOf(remembers(view(Federated(1, 10, paused), c), "a", before), "a").ConfirmedVersion).To(Equal(expected))
		},
		Entry("for the first time", has("a", 1, 10, 3), confirmed(1, 10), "100"),
		Entry("in the one before, as long as they stay", has("a", 1, 10, 3), sawVersion("90", 1, 10), "90"),
		Entry("in the latest one, if they changed", has("a", 1, 10, 3), sawVersion("90", 1, 9), "100"),
		Entry("in the present one, if the later one no longer exists", has("a", 1, 10, 3, verified("200")), sawVersion("200", 1, 10), "100"),
		Entry("in the later one, until that is seen again", has("a", 1, 10, 3), sawVersion("200", 1, 9), "200"),
		Entry("in the one before, while nothing is known", but(none("a"), silent), sawVersion("90", 1, 10), "90"),
		Entry("in none, once the autoscaler is gone", but(none("a"), shows("100")), sawVersion("90", 1, 10), ""),
	)

	DescribeTable("forgets how a cluster came and went",
		func(v plan.View, kept bool) {
			e := entry(&v, "a")
			e.OnDemand, e.QuietSince, e.MovedAt, e.RemovableAfter = true, ago(time.Minute), ago(time.Minute), ago(time.Second)
			s := ledgerOf(v, "a")
			Expect(s.OnDemand).To(BeFalse())
			Expect(s.QuietSince).To(BeNil())
			Expect(s.MovedAt != nil).To(Equal(kept))
			Expect(s.RemovableAfter != nil).To(Equal(kept))
		},
		Entry("once it is idle", view(Federated(1, 10, Strict), none("a"), has("b", 1, 10, 3)), false),
		Entry("while it waits", view(Federated(2, 10), none("a"), has("b", 1, 10, 10)), false),
		Entry("but not its times while an autoscaler is used", view(Federated(1, 10), has("a", 1, 10, 3)), true),
	)

	It("keeps the times of conditions that do not change, and renews those of others", func() {
		v := view(Federated(2, 20), has("a", 1, 20, 5))
		v.Object.Status = status(v, plan.New(v))
		v.Now, v.Object.Generation = noon.Add(time.Minute), 4
		v.Clusters[0].Reachable = false
		s := status(v, plan.New(v))
		Expect(s.ObservedGeneration).To(BeEquivalentTo(4))
		Expect(meta.FindStatusCondition(s.Conditions, "Limited").LastTransitionTime.Time).To(Equal(noon))
		Expect(meta.FindStatusCondition(s.Conditions, "ClustersUnreachable").LastTransitionTime.Time).To(Equal(noon.Add(time.Minute)))
	})
})

// released gives up the shares of these clusters while they are out of reach.
func released(names ...string) func(*Spec) {
	return func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: names} }
}

// said is the message of a condition.
func said(v plan.View, kind string) string {
	return meta.FindStatusCondition(status(v, plan.New(v)).Conditions, kind).Message
}

// many are clusters with an autoscaler each, of which all are out of reach.
func many(n int) []plan.Cluster {
	var all []plan.Cluster
	for i := range n {
		all = append(all, has(fmt.Sprintf("c%02d", i), 1, 1, 1, away))
	}
	return all
}

var _ = Describe("Conditions", func() {
	DescribeTable("have a reason",
		func(kind, expected string, v plan.View) { Expect(condition(v, kind)).To(Equal(expected)) },
		Entry("a cluster is used", "Ready", "True UnderControl", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a cluster joins", "Ready", "True UnderControl", view(Federated(1, 10), none("a"))),
		Entry("the only cluster does not answer", "Ready", "False NoClusters", view(Federated(1, 10), but(none("a"), silent))),
		Entry("the only cluster is leaving", "Ready", "False NoClusters", view(Federated(1, 10), has("a", 1, 10, 3, unselected))),
		Entry("a cluster refuses", "Ready", "False ClustersRefused", view(Federated(2, 10), has("a", 1, 10, 3), but(none("b"), refusing))),
		Entry("a cluster that refuses is leaving", "Ready", "True UnderControl", view(Federated(2, 10), has("a", 1, 5, 3), has("b", 1, 5, 3, refusing, unselected))),
		Entry("all answer", "ClustersUnreachable", "False AllReached", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("one does not answer and has no share", "ClustersUnreachable", "False AllReached", view(Federated(1, 10), has("a", 1, 10, 3), but(none("b"), silent))),
		Entry("one may still answer", "ClustersUnreachable", "False AllReached", remembers(view(Federated(1, 10), but(none("a"), starting)), "a", confirmed(1, 10))),
		Entry("one does not answer and may have a share", "ClustersUnreachable", "True OutOfReach", remembers(view(Federated(1, 10), but(none("a"), silent)), "a", confirmed(1, 10))),
		Entry("nothing changes", "Balanced", "True AtGoal", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a maximum rises", "Balanced", "False Moving", view(Federated(1, 10), has("a", 1, 9, 3))),
		Entry("an order may still take effect", "Balanced", "False Moving", remembers(view(Federated(1, 10), has("a", 1, 10, 3)), "a", outstanding(1, 10, "100"))),
		Entry("only a cluster whose share is lent has not answered", "Balanced", "True AtGoal", remembers(view(Federated(1, 10, released("a")), plan.Cluster{Name: "a"}, has("b", 1, 10, 3)), "a", outstanding(1, 10, "100"))),
		Entry("no cluster asks for more", "Limited", "False Enough", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("one asks for more", "Limited", "True TooFewReplicas", view(Federated(1, 10), has("a", 1, 10, 10, wants(11)))),
		Entry("the maxima fit", "OverCommitted", "False Within", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a maximum is too high", "OverCommitted", "True MaximaExceedMaxReplicas", view(Federated(1, 10), has("a", 1, 11, 3))),
		Entry("the minima fit", "MinExceeded", "False Within", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("there are more clusters than minReplicas", "MinExceeded", "True MinimaExceedMinReplicas", view(Federated(1, 10), has("a", 1, 5, 3), has("b", 1, 5, 3))),
		Entry("no cluster waits", "JoiningBlocked", "False NotNeeded", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a cluster waits", "JoiningBlocked", "True NoRoom", view(Federated(1, 10), has("a", 1, 10, 10), none("b"))),
	)

	DescribeTable("say which clusters, and how many replicas",
		func(kind, expected string, v plan.View) { Expect(said(v, kind)).To(Equal(expected)) },
		func(kind, expected string, _ plan.View) string { return kind + ": " + expected },
		Entry(nil, "Ready", "the hub manages all selected clusters", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry(nil, "Ready", "see status.clusters for b, c", view(Federated(2, 10), has("a", 1, 10, 3), but(none("b"), refusing), but(none("c"), refusing))),
		Entry(nil, "ClustersUnreachable", "these clusters do not answer and keep their bounds: b", view(Federated(2, 10), has("a", 1, 5, 3), has("b", 1, 5, 3, away))),
		Entry(nil, "Balanced", "bounds are being changed in b", view(Federated(2, 10), has("a", 1, 5, 3), has("b", 1, 6, 3))),
		Entry(nil, "Balanced", "bounds are being changed in a", view(Federated(3, 10), has("a", 1, 5, 3), has("b", 1, 5, 3))),
		Entry(nil, "Limited", "clusters request 5 more replicas than maxReplicas and their own limits allow", view(Federated(2, 10), has("a", 1, 5, 5, wants(7)), has("b", 1, 5, 5, wants(8)))),
		Entry(nil, "OverCommitted", "the maximums of the clusters may add up to 7 more than maxReplicas; 0 of these are the lent shares of unreachable clusters", view(Federated(2, 10), has("a", 1, 8, 5), has("b", 1, 9, 5))),
		Entry(nil, "OverCommitted", "the maximums of the clusters may add up to 7 more than maxReplicas; 7 of these are the lent shares of unreachable clusters", view(Federated(2, 10, released("b")), has("a", 1, 10, 5), has("b", 1, 7, 5, away))),
		Entry(nil, "MinExceeded", "the minimums of the clusters add up to 2 more than minReplicas", view(Federated(1, 10), none("a"), none("b"), none("c"))),
		Entry(nil, "JoiningBlocked", "other clusters use all of maxReplicas; these clusters wait: b, c", view(Federated(1, 10), has("a", 1, 10, 10), none("b"), none("c"))),
	)

	DescribeTable("name up to ten clusters",
		func(n int, expected string) {
			Expect(said(view(Federated(1, 20), many(n)...), "ClustersUnreachable")).To(HaveSuffix(expected))
		},
		Entry(nil, 2, "c00, c01"),
		Entry(nil, 10, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09"),
		Entry(nil, 11, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 1 more"),
		Entry(nil, 13, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 3 more"),
	)
})
