// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

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
		Expect(said(crowd(258, none), "Ready")).To(Equal("an object can use at most 256 clusters, and 2 more are selected: narrow spec.clusterSelector"))
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
