// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// moved is a view in which a cluster's bounds changed some time ago.
func moved(v plan.View, name string, before time.Duration) plan.View {
	entry(&v, name).MovedAt = ago(before)
	return v
}

// remembers is a view with a ledger that says so of a cluster.
func remembers(v plan.View, name string, say func(*v1alpha1.ClusterStatus)) plan.View {
	say(entry(&v, name))
	return v
}

func confirmed(lo, hi int32) func(*v1alpha1.ClusterStatus) {
	return func(s *v1alpha1.ClusterStatus) { s.ConfirmedMinReplicas, s.ConfirmedMaxReplicas = lo, hi }
}

func outstanding(lo, hi int32, base string) func(*v1alpha1.ClusterStatus) {
	return func(s *v1alpha1.ClusterStatus) {
		s.Epoch, s.Outstanding = 4, &v1alpha1.Outstanding{MinReplicas: lo, MaxReplicas: hi, Base: base}
	}
}

func condition(v plan.View, kind string) string {
	c := meta.FindStatusCondition(status(v, plan.New(v)).Conditions, kind)
	return string(c.Status) + " " + c.Reason
}

var _ = Describe("Maxima", func() {
	DescribeTable("go where they are needed",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("by weight", view(Federated(2, 12, Prefer("a", Weight(2))), none("a"), none("b")), "8/4"),
		Entry("by tier", view(Federated(2, 12, Prefer("b", Tier(1))), none("a"), none("b")), "11/1"),
		Entry("up to a preference", view(Federated(2, 12, Prefer("a", AtMost(3))), none("a"), none("b")), "3/9"),
		Entry("up to a preference for all", view(Federated(2, 12, Prefer("*", AtMost(4))), none("a"), none("b")), "4/4"),
		Entry("not beyond a preference, however limited", view(Federated(2, 12, Prefer("a", AtMost(6))), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "6/6"),
		Entry("down to a preference", view(Federated(2, 12, Prefer("a", AtMost(4))), has("a", 1, 6, 5), has("b", 1, 6, 1)), "4/8"),
		Entry("not from who keeps headroom", view(Federated(2, 12, func(s *Spec) { Rebalance(s).Headroom = ptr.To[int32](3) }), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "8/4"),
		Entry("not from who has just got some", moved(view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "b", time.Minute), "6/6"),
		Entry("from who got some long ago", moved(view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "b", 3*time.Minute), "10/2"),
		Entry("step by step", view(Federated(2, 12, func(s *Spec) { Rebalance(s).MaxStepPercent = ptr.To[int32](20) }), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "9/3"),
		Entry("not from a frozen one", view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1, inactive)), "6/6"),
		Entry("from a frozen one if the maximum was lowered", view(Federated(2, 8), has("a", 1, 6, 6), has("b", 1, 6, 1, inactive)), "6/2"),
		Entry("evenly from what runs, if so little is left", view(Federated(2, 8), has("a", 1, 10, 10), has("b", 1, 10, 10)), "4/4"),
		Entry("to no cluster that only grows as fast as allowed", view(Federated(2, 12), has("a", 1, 6, 5, func(c *plan.Cluster) { c.Local.Limit = v1alpha1.ByRate }), has("b", 1, 6, 1)), "6/6"),
	)

	It("wait for a giver to cool down, and say when", func() {
		v := moved(view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 1)), "b", time.Minute)
		Expect(plan.New(v).Again).To(Equal(time.Minute))
	})

	It("are missing, and the condition says how many", func() {
		v := view(Federated(2, 12), has("a", 1, 6, 6, wants(20)), has("b", 1, 6, 6, wants(8)))
		Expect(plan.New(v).Missing).To(BeEquivalentTo(16))
		Expect(condition(v, "Limited")).To(Equal("True TooFewReplicas"))
	})
})

var _ = Describe("Clusters", func() {
	DescribeTable("are chosen",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("by tier, then name", view(Federated(2, 10, Strict, Prefer("a", Tier(1))), none("a"), none("b"), none("c")), "-/5/5"),
		Entry("if they are used already", view(Federated(2, 10, Strict), none("a"), has("b", 1, 5, 1), has("c", 1, 5, 1)), "-/5/5"),
		Entry("not while others may answer first", view(Federated(1, 10, Strict), func() plan.Cluster { c := none("a"); c.Starting, c.Reachable, c.Absent = true, false, false; return c }(), none("b")), "-/-"),
		Entry("not if they cannot be reached", view(Federated(2, 10), func() plan.Cluster { c := none("a"); c.Reachable = false; return c }(), none("b")), "-/10"),
		Entry("not if another autoscaler scales there", view(Federated(2, 10), func() plan.Cluster { c := none("a"); c.Foreign = plan.Hold{Reason: "NameTaken"}; return c }(), none("b")), "-/10"),
		Entry("not if they refuse", view(Federated(2, 10), func() plan.Cluster { c := none("a"); c.Fault = plan.Hold{Reason: "RefusedForbidden"}; return c }(), none("b")), "-/10"),
		Entry("in need only, not before", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 10, 9), none("b")), "10/-"),
		Entry("in need only, not where nothing is left", view(Federated(1, 10, Strict, OnDemand), has("a", 1, 10, 10, wants(20)), none("b")), "10/-"),
		Entry("in need, beyond a preference", view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(6))), has("a", 1, 6, 6, wants(20)), none("b")), "6/4"),
		Entry("in need, when one is stuck", isStuck(view(Federated(1, 10, Strict, OnDemand, Prefer("other", Tier(1))), none("other"), has("stuck", 1, 10, 8, readyCondition(4)))), "5/5"),
		Entry("in need, while one is out of reach", view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(6))), has("a", 1, 6, 3, away), none("b")), "6/4"),
		Entry("not without the wish", isStuck(view(Federated(1, 10, Strict), none("other"), has("stuck", 1, 10, 8, readyCondition(4)))), "-/10"),
	)

	It("leave when they are not needed any more, after a quiet time", func() {
		v := view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 1))
		entry(&v, "b").OnDemand = true
		p := plan.New(v)
		Expect(aims(p)).To(Equal("5/5"))
		Expect(p.Again).To(Equal(10 * time.Minute))
		v.Object.Status = status(v, p)
		v.Now = noon.Add(10 * time.Minute)
		Expect(orders(plan.New(v))).To(Equal([]string{"b gone"}), "the rest goes to a once that is confirmed")
	})

	It("do not leave while they run more than one", func() {
		v := view(Federated(1, 10, Strict, OnDemand), has("a", 1, 5, 3), has("b", 1, 5, 2))
		entry(&v, "b").OnDemand, entry(&v, "b").QuietSince = true, ago(time.Hour)
		Expect(aims(plan.New(v))).To(Equal("5/5"))
		Expect(status(v, plan.New(v)).Clusters[1].QuietSince).To(BeNil())
	})

	It("get zero where that is asked for", func() {
		v := view(Federated(1, 10, func(s *Spec) { s.MinPolicy = v1alpha1.AllowZero }), none("a"), none("b"))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..5", "b 0..5"}))
	})

	It("exceed the minimum together, and say so", func() {
		v := view(Federated(1, 10), none("a"), none("b"), none("c"))
		Expect(condition(v, "MinExceeded")).To(Equal("True MinimaExceedMinReplicas"))
		Expect(least(plan.New(v))).To(Equal("1/1/1"))
	})
})

var _ = Describe("Escrow", func() {
	raising := func() plan.View {
		return view(Federated(2, 20), has("a", 1, 10, 10, wants(18)), has("b", 1, 10, 1))
	}

	It("lowers before it raises", func() {
		Expect(orders(plan.New(raising()))).To(Equal([]string{"b 1..2"}))
	})

	It("counts a giver with what it had until it confirms", func() {
		v := raising()
		v.Clusters[1].InFlight, v.Clusters[1].Sent = &plan.Bounds{Min: 1, Max: 2}, noon
		Expect(orders(plan.New(v))).To(BeEmpty())
		v.Clusters[1].InFlight = nil
		v.Clusters[1].Local.Bounds, v.Clusters[1].Local.Version = plan.Bounds{Min: 1, Max: 2}, "101"
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..18"}))
	})

	It("enters a raise before it is sent, and knows that it was after a restart", func() {
		v := view(Federated(2, 20), has("a", 1, 10, 10, wants(18)), has("b", 1, 2, 1))
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"a 1..18"}))
		s := status(v, p)
		Expect(s.Clusters[0].Outstanding).To(Equal(&v1alpha1.Outstanding{MinReplicas: 1, MaxReplicas: 18, Base: "100"}))
		Expect(s.Clusters[0].Epoch).To(BeEquivalentTo(1))
		Expect(s.CountedReplicas).To(BeEquivalentTo(20))
		v.Object.Status = s
		v.Clusters[0].Reachable = false
		Expect(status(v, plan.New(v)).CountedReplicas).To(BeEquivalentTo(20), "it may have arrived")
	})

	It("does not take a raise of unknown end for lost because it is not there yet", func() {
		v := remembers(view(Federated(2, 20), has("a", 1, 10, 2), has("b", 1, 2, 2, wants(9))), "a", outstanding(1, 18, "100"))
		p := plan.New(v)
		Expect(p.Clusters[0].Counted.Max).To(BeEquivalentTo(18))
		Expect(orders(p)).To(Equal([]string{"a 1..10"}), "a write that lands makes sure of it; its bounds are counted")
		s := status(v, p)
		Expect(s.Clusters[0].Outstanding).To(Equal(&v1alpha1.Outstanding{MinReplicas: 1, MaxReplicas: 18, Base: "100", Repeated: true}))
		Expect(s.Clusters[0].Epoch).To(BeEquivalentTo(5))
	})

	It("takes it for lost as soon as the cluster shows a later version", func() {
		v := remembers(view(Federated(2, 12), has("a", 1, 10, 2), has("b", 1, 2, 2)), "a", outstanding(1, 18, "99"))
		Expect(plan.New(v).Clusters[0].Counted.Max).To(BeEquivalentTo(10))
		Expect(status(v, plan.New(v)).Clusters[0].Outstanding).To(BeNil())
	})

	It("takes it for lost if it was refused, unless something was sent before on the same base", func() {
		v := remembers(view(Federated(2, 12), has("a", 1, 10, 2), has("b", 1, 2, 2)), "a", outstanding(1, 18, "100"))
		v.Clusters[0].Rejected = 4
		Expect(plan.New(v).Clusters[0].Counted.Max).To(BeEquivalentTo(10))
		entry(&v, "a").Outstanding.Repeated = true
		Expect(plan.New(v).Clusters[0].Counted.Max).To(BeEquivalentTo(18))
	})

	It("writes even where the bounds stay, to be certain", func() {
		v := remembers(view(Federated(2, 12), has("a", 1, 10, 2), has("b", 1, 2, 1)), "a", outstanding(1, 18, "100"))
		Expect(orders(plan.New(v))).To(ContainElement("a 1..10"))
	})

	It("creates an autoscaler that is not wanted any more, if one may exist, so that it is certain to be removed", func() {
		c := none("a")
		c.Selected = false
		v := remembers(view(Federated(1, 12), c), "a", outstanding(1, 9, ""))
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"a 1..1"}))
		v.Object.Status = status(v, p)
		obey(&v, p.Orders[0])
		v.Now = noon.Add(time.Minute)
		p = plan.New(v)
		Expect(orders(p)).To(BeEmpty(), "the other creation may still arrive once this one is removed")
		Expect(p.Again).To(Equal(2 * time.Minute))
		v.Now = noon.Add(3 * time.Minute)
		Expect(orders(plan.New(v))).To(Equal([]string{"a gone"}))
	})

	It("raises a minimum before it lowers another, and lowers it before it is confirmed nowhere", func() {
		v := view(Federated(6, 20, Minima), has("a", 3, 10, 3, wantsLess(1)), has("b", 3, 10, 7))
		Expect(orders(plan.New(v))).To(Equal([]string{"b 5..10"}))
		v.Clusters[1].Local.Bounds = plan.Bounds{Min: 5, Max: 10}
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"a 1..10"}))
		Expect(status(v, p).Clusters[0].Outstanding.MinReplicas).To(BeEquivalentTo(1), "it counts as lowered from now on")
	})

	It("never grows a sum that is too high already", func() {
		v := view(Federated(2, 8), has("a", 1, 10, 1), has("b", 1, 3, 3, wants(9)))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..2"}))
	})

	It("raises nothing while a cluster of the ledger has not been read: after a restore of the hub it may have more than the ledger says", func() {
		v := remembers(view(Federated(2, 20), has("a", 1, 10, 10, wants(18)), plan.Cluster{Name: "b", Registered: true, Starting: true}, has("c", 1, 6, 1)), "b", confirmed(1, 2))
		Expect(orders(plan.New(v))).To(Equal([]string{"c 1..2"}), "lowerings do not wait")
		v.Clusters[2].Local.Bounds = plan.Bounds{Min: 1, Max: 2}
		p := plan.New(v)
		Expect(orders(p)).To(BeEmpty())
		Expect(p.Again).To(Equal(15*time.Second), "the time that it has to answer ends without an event")
		v.Clusters[1].Starting = false
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..16"}))
	})

	It("raises nothing while a cluster may be another one that has not been read, because what it has does not count", func() {
		v := view(Federated(1, 20), has("a", 1, 10, 10, wants(18)), has("b", 1, 8, 3, func(c *plan.Cluster) {
			c.Alias, c.Doubtful, c.Fault = true, true, plan.Hold{Reason: "SameCluster"}
		}))
		Expect(orders(plan.New(v))).To(BeEmpty())
		v.Clusters[1].Doubtful = false
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..20"}))
	})

	It("waits a moment for all givers, and not for a slow one", func() {
		v := view(Federated(3, 30), has("a", 1, 10, 10, wants(24)), has("b", 1, 3, 2), has("c", 1, 10, 2))
		v.Clusters[2].InFlight, v.Clusters[2].Sent = &plan.Bounds{Min: 1, Max: 3}, noon.Add(-300*time.Millisecond)
		p := plan.New(v)
		Expect(orders(p)).To(BeEmpty())
		Expect(p.Again).To(Equal(time.Second))
		v.Clusters[2].Sent = noon.Add(-time.Second)
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..17"}))
	})
})

var _ = Describe("A cluster out of reach", func() {
	lending := func(s *Spec) {
		s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](600)}
	}
	gone := func(change func(*Spec), before time.Duration) plan.View {
		v := view(Federated(2, 20, change), has("a", 1, 10, 10, wants(25)), has("b", 1, 10, 4, away))
		entry(&v, "b").UnreachableSince = ago(before)
		return v
	}

	It("keeps its share", func() {
		v := gone(func(*Spec) {}, 24*time.Hour)
		Expect(orders(plan.New(v))).To(BeEmpty())
		Expect(condition(v, "ClustersUnreachable")).To(Equal("True OutOfReach"))
		Expect(condition(v, "OverCommitted")).To(Equal("False Within"))
	})

	It("lends it after a time, if that is asked for, and says when", func() {
		v := gone(lending, time.Minute)
		Expect(plan.New(v).Again).To(Equal(9 * time.Minute))
		Expect(orders(plan.New(v))).To(BeEmpty())
		v = gone(lending, 10*time.Minute)
		Expect(orders(plan.New(v))).To(Equal([]string{"a 2..20"}))
		Expect(condition(v, "OverCommitted")).To(Equal("True MaximaExceedMaxReplicas"))
	})

	It("gives it away if it was given up", func() {
		v := gone(func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"b"}} }, 0)
		Expect(orders(plan.New(v))).To(Equal([]string{"a 2..20"}))
	})

	It("is lowered first when it returns", func() {
		v := view(Federated(2, 20, lending), has("a", 2, 20, 12), has("b", 1, 10, 4))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..13", "b 1..7"}), "both keep what they run, and the sum is 20 again")
		Expect(condition(v, "OverCommitted")).To(Equal("True MaximaExceedMaxReplicas"))
	})

	It("is remembered by the ledger where nothing can be seen", func() {
		c := plan.Cluster{Name: "b"}
		v := remembers(view(Federated(2, 20), has("a", 1, 10, 10, wants(25)), c), "b", confirmed(1, 10))
		Expect(orders(plan.New(v))).To(BeEmpty())
		Expect(plan.New(v).Clusters[1].Counted.Max).To(BeEquivalentTo(10))
	})
})

var _ = Describe("Numbers that a cluster makes up", func() {
	extremes := []int32{math.MinInt32, -1, 0, 1, 2, 7, math.MaxInt32 - 1, math.MaxInt32}

	It("break no plan of the object, and add up to numbers that its status can hold", func() {
		random := rand.New(rand.NewPCG(1, 2))
		pick := func() int32 { return extremes[random.IntN(len(extremes))] }
		for range 3000 {
			v := view(Federated(max(1, pick()), math.MaxInt32))
			v.Object.Spec.MinReplicas = ptr.To(min(*v.Object.Spec.MinReplicas, v.Object.Spec.MaxReplicas))
			for i := range 4 {
				h := &autoscalingv2.HorizontalPodAutoscaler{}
				h.Spec.MinReplicas, h.Spec.MaxReplicas = ptr.To(pick()), pick()
				h.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Target: autoscalingv2.MetricTarget{AverageValue: extreme(random)}}}}
				h.Status.CurrentReplicas, h.Status.DesiredReplicas = pick(), pick()
				h.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricStatus{Current: autoscalingv2.MetricValueStatus{AverageValue: extreme(random)}}}}
				h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionTrue, Reason: []string{"TooManyReplicas", "TooFewReplicas"}[random.IntN(2)]}}
				c := none(fmt.Sprint("c", i))
				c.Absent, c.Local = false, plan.LocalOf(h)
				c.Local.Version = "100"
				c.Workload = plan.Workload{Known: true, Exists: true, Counted: true, Ready: int64(pick())}
				v.Clusters = append(v.Clusters, c)
			}
			p := plan.New(v)
			s := status(v, p)
			for _, n := range []int32{s.CurrentReplicas, s.DesiredReplicas, s.ReadyReplicas, s.MinReplicas, s.MaxReplicas, s.CountedReplicas} {
				Expect(n).To(BeNumerically(">=", 0), "%+v", s)
			}
			for _, o := range p.Orders {
				Expect(o.Min).To(BeNumerically("<=", o.Max))
				Expect(o.Max).To(And(BeNumerically(">=", 0), BeNumerically("<=", math.MaxInt32)))
			}
			Expect(p.Missing).To(BeNumerically(">=", 0))
		}
	})

	It("of one cluster delay no other", func() {
		v := view(Federated(2, 20), has("c1", 1, 10, 10, wants(15)), has("c2", 1, 10, 2))
		v.Clusters[1].Workload.Ready = math.MinInt64
		Expect(aims(plan.New(v))).To(Equal("15/5"))
	})
})

func extreme(random *rand.Rand) *resource.Quantity {
	all := []string{"0", "1", "-1", "1m", "9223372036854775807", "1e18", "1E999", "-1E999", "1n"}
	q := resource.MustParse(all[random.IntN(len(all))])
	return &q
}

var _ = Describe("More clusters than an object can hold", func() {
	crowd := func(n int, make func(name string) plan.Cluster) plan.View {
		v := view(Federated(1, 3000))
		for i := range n {
			v.Clusters = append(v.Clusters, make(fmt.Sprintf("c%03d", i)))
		}
		return v
	}

	DescribeTable("are counted",
		func(v plan.View, kept, omitted int) {
			p := plan.New(v)
			Expect(p.Clusters).To(HaveLen(kept))
			Expect(p.Omitted).To(Equal(omitted))
		},
		Entry("if there are just as many as it can", crowd(256, none), 256, 0),
		Entry("if there is one more", crowd(257, none), 256, 1),
		Entry("if there are two more", crowd(258, none), 256, 2),
		Entry("but not if the last ones are not selected", view(Federated(1, 3000), append(crowd(256, none).Clusters, but(none("z"), unselected))...), 256, 0),
		Entry("but not if the first ones are no longer selected", view(Federated(1, 3000), append([]plan.Cluster{but(none("a"), unselected)}, crowd(256, none).Clusters...)...), 256, 0),
		Entry("if all others have a part, which none of them loses", view(Federated(1, 3000), append(crowd(256, func(name string) plan.Cluster { return has(name, 1, 5, 3) }).Clusters, none("z"))...), 256, 1),
		Entry("but not where all have a part, which none loses", crowd(258, func(name string) plan.Cluster { return has(name, 1, 5, 3) }), 258, 0),
	)

	// workloads are so many clusters with a workload that the hub created, and without an autoscaler.
	workloads := func(n int, change ...func(*plan.Cluster)) (all []plan.Cluster) {
		for i := range n {
			all = append(all, but(none(fmt.Sprintf("w%03d", i)), append(change, runs(exists, ours))...))
		}
		return all
	}

	It("leave out the last by name where all but one have only a workload, and not the one that has a part", func() {
		v := view(Federated(1, 3000), append(workloads(300), has("z", 1, 5, 3))...)
		slices.Reverse(v.Clusters)
		p := plan.New(v)
		Expect(p.Omitted).To(Equal(45))
		Expect(status(v, p).Clusters).To(HaveLen(256))
		Expect(p.Clusters[254].Name).To(Equal("w254"))
		Expect(p.Clusters[255].Name).To(Equal("z"))
		Expect(condition(v, "Ready")).To(Equal("False TooManyClusters"))
	})

	It("are not those that the object selects no longer, which take no place and lose their workloads", func() {
		v := view(Federated(1, 3000), append(workloads(300, unselected), crowd(256, none).Clusters...)...)
		withTemplate(&v.Object.Spec)
		p := plan.New(v)
		Expect(p.Omitted).To(BeZero())
		Expect(status(v, p).Clusters).To(And(HaveLen(256), HaveEach(HaveField("Name", HavePrefix("c")))))
		removed := 0
		for _, w := range p.Placings {
			if w.Operation == plan.Remove {
				removed++
			}
		}
		Expect(removed).To(Equal(300))
	})

	It("leave room in the status for some that the object selects no longer, and all of these lose their workloads", func() {
		v := view(Federated(1, 3000), append(workloads(100, unselected), crowd(200, none).Clusters...)...)
		withTemplate(&v.Object.Spec)
		p := plan.New(v)
		Expect(p.Omitted).To(BeZero())
		Expect(status(v, p).Clusters).To(HaveLen(256))
		removed := 0
		for _, w := range p.Placings {
			if w.Operation == plan.Remove {
				removed++
			}
		}
		Expect(removed).To(Equal(100))
	})

	It("do not keep workloads from being removed where the object selects no longer", func() {
		v := crowd(256, none)
		withTemplate(&v.Object.Spec)
		v.Clusters = append(v.Clusters, but(none("z"), unselected, runs(exists, ours)))
		Expect(plan.New(v).Placings).To(ContainElement(plan.WorkloadWrite{Cluster: "z", Operation: plan.Remove, Version: "7", UID: "w"}))
	})

	It("are said, even if it is only one", func() {
		Expect(condition(crowd(257, none), "Ready")).To(Equal("False TooManyClusters"))
		Expect(said(crowd(258, none), "Ready")).To(Equal("at most 256 clusters can be used, and 2 more are selected: narrow spec.clusterSelector"))
	})

	It("leave the lowest tiers and those that something was promised to, and are said", func() {
		v := view(Federated(1, 3000))
		for i := range 400 {
			v.Clusters = append(v.Clusters, none(fmt.Sprintf("c%03d", i)))
		}
		Prefer("c399", Tier(0))(&v.Object.Spec)
		Prefer("*", Tier(1))(&v.Object.Spec)
		v.Clusters = append(v.Clusters, has("zz", 1, 5, 5))
		p := plan.New(v)
		s := status(v, p)
		Expect(s.Clusters).To(HaveLen(256))
		names := []string{}
		for _, c := range s.Clusters {
			names = append(names, c.Name)
		}
		Expect(names).To(ContainElements("zz", "c399", "c000", "c253"))
		Expect(names).NotTo(ContainElement("c254"))
		Expect(s.Conditions).To(ContainElement(And(HaveField("Type", "Ready"), HaveField("Reason", "TooManyClusters"))))
	})
})
