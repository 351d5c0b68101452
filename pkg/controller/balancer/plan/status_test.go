// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// told is the status of a view whose plan is carried out.
func told(v View) v1alpha1.BalancerStatus {
	p := New(v)
	var o Outcome
	for _, s := range p.Shares {
		o = append(o, s.Next)
	}
	return status(v, p, o)
}

// says returns a condition, as in "False NoRoom", and its message.
func says(s v1alpha1.BalancerStatus, kind string) (short, message string) {
	c := meta.FindStatusCondition(s.Conditions, kind)
	Expect(c).NotTo(BeNil(), kind)
	Expect(c.ObservedGeneration).To(BeEquivalentTo(3))
	return string(c.Status) + " " + c.Reason, c.Message
}

var _ = Describe("A status", func() {
	DescribeTable("has a condition with numbers for what limits keep from the total",
		func(replicas int, want, numbers string, overflow, deficit int, a, b target) {
			s := told(view(int32(replicas), builders.Shares(50, 50), a, b))
			short, message := says(s, v1alpha1.ConditionWithinLimits)
			Expect(short).To(Equal(want))
			Expect(message).To(ContainSubstring(numbers))
			Expect([]int{int(s.Overflow), int(s.Deficit)}).To(Equal([]int{overflow, deficit}))
		},
		Entry("nothing", 10, "True Room", "fit", 0, 0, named("a"), named("b")),
		Entry("no room", 10, "False NoRoom", "room for 5 of the 10", 5, 0, named("a", between(0, 3)), named("b", between(0, 2))),
		Entry("minimums", 10, "False BelowMinimums", "exceed 10 replicas by 5", 0, 5, named("a", between(8, -1)), named("b", between(7, -1))),
		Entry("both, where one has to be stood in for", 1, "False TooFewAndNoRoom", "exceed 1 replicas by 1, and no target has room for 1", 1, 1,
			named("a", between(1, 1), pods(1, 1)), named("b", between(1, 1))),
		Entry("minimums that 32 bits do not hold together", 10, "False BelowMinimums", "by 3999999990", 0, math.MaxInt32,
			named("a", between(2_000_000_000, -1)), named("b", between(2_000_000_000, -1))),
	)

	DescribeTable("counts for an autoscaler what it asked for, without additional replicas, surge and what is being removed",
		func(want []int32, replicas int, targets ...target) {
			s := told(view(int32(replicas), builders.Even(), targets...))
			Expect([]int32{s.Replicas, s.ObservedReplicas, s.ReadyReplicas, s.DesiredReplicas}).To(Equal(want))
		},
		Entry("at rest", []int32{10, 10, 10, 10}, 10, named("a", healthy(5)), named("b", healthy(5))),
		Entry("before the first pod", []int32{0, 0, 0, 10}, 10, named("a"), named("b")),
		Entry("while it grows", []int32{8, 8, 8, 10}, 10, named("a", healthy(4)), named("b", healthy(4))),
		Entry("while it shrinks", []int32{4, 10, 10, 4}, 4, named("a", healthy(5)), named("b", healthy(5))),
		Entry("with stand-ins", []int32{10, 15, 10, 15}, 10, named("a", pods(5, 5)), named("b", healthy(10))),
		Entry("with minimums above the total", []int32{6, 6, 6, 6}, 1, named("a", between(3, -1), healthy(3)), named("b", between(3, -1), healthy(3))),
	)

	DescribeTable("tells how far whole replicas are from the shares",
		func(replicas int, policy v1alpha1.BalancerPolicy, percent int, targets ...target) {
			Expect(told(view(int32(replicas), policy, targets...)).ShareErrorPercent).To(BeEquivalentTo(percent))
		},
		Entry("exact", 10, builders.Shares(50, 50), 0, named("a"), named("b")),
		Entry("half a replica of one", 1, builders.Shares(50, 50), 50, named("a"), named("b")),
		Entry("0.3 of 17", 17, builders.Shares(90, 5, 5), 2, named("a"), named("b"), named("c")),
		Entry("nothing to share", 0, builders.Shares(90, 5, 5), 0, named("a"), named("b"), named("c")),
	)

	It("sums up in Ready what has to be done, and in Balancing what the original said", func() {
		check := func(v View, ready, balancing string) {
			GinkgoHelper()
			s := told(v)
			short, _ := says(s, v1alpha1.ConditionReady)
			Expect(short).To(Equal(ready))
			short, _ = says(s, v1alpha1.ConditionBalancing)
			Expect(short).To(Equal(balancing))
		}
		v := view(10, builders.Even(), named("a"), named("b"))
		check(v, "True UnderControl", "True Completed")
		_, message := says(told(v), v1alpha1.ConditionBalancing)
		Expect(message).To(Equal("Balancer running OK"))
		v.Balancer.Spec.Paused = true
		check(v, "False Paused", "True Completed")
		v.Balancer.Spec.Paused = false
		v.Targets[0].Hold = Hold{v1alpha1.PhasePodLabelsChecking, "LabelsDiffer", "x"}
		check(v, "False TargetsUnresolved", "False PodLabelsChecking")
		v.Rival, v.Contested = "older", "b"
		check(v, "False Conflict", "False ApplyingBalancerPolicy")
		short, _ := says(told(v), v1alpha1.ConditionFallbackActive)
		Expect(short).To(Equal("Unknown Conflict"))
	})

	It("shows for each target what is wrong with it, and for all of them in the condition", func() {
		s := told(view(10, builders.Even(), named("a", held), named("b", absent), named("c")))
		Expect([]string{s.Targets[0].Reason, s.Targets[1].Reason, s.Targets[2].Reason}).To(Equal([]string{"Autoscaled", "Autoscaled", ""}))
		short, message := says(s, v1alpha1.ConditionTargetsResolved)
		Expect(short).To(Equal("False Autoscaled"))
		Expect(message).To(Equal("target a: x; target b: x"))
	})

	It("keeps the time of a condition that stays as it is, and is the same again at rest", func() {
		v := view(10, builders.Even(), named("a", healthy(5)), named("b", healthy(5)))
		v.Balancer.Status = told(v)
		v.Now = v.Now.Add(time.Hour)
		Expect(told(v)).To(Equal(v.Balancer.Status))
	})

	DescribeTable("publishes a selector that an autoscaler can use, or none",
		func(selector metav1.LabelSelector, text string) {
			v := view(10, builders.Even(), named("a"), named("b"))
			v.Balancer.Spec.Selector = selector
			Expect(told(v).Selector).To(Equal(text))
		},
		Entry(nil, metav1.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"}}, "a=1,b=2"),
		Entry(nil, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"y", "x"}}}}, "a notin (x,y)"),
		Entry("everything", metav1.LabelSelector{}, ""),
		Entry("garbage", metav1.LabelSelector{MatchLabels: map[string]string{"a": "no such value!"}}, ""),
	)

	DescribeTable("of the original's stuck pod in a hundred: one more runs elsewhere, or with a quorum none",
		func(change func(*v1alpha1.Fallback), want string) {
			v := view(300, builders.Even(), named("a", pods(100, 1)), named("b", healthy(100)))
			v.Balancer.Spec.Policy.Fallback = builders.Fallback(change)
			Expect(desired(New(v))).To(Equal(want))
		},
		Entry("one blocks the target", func(*v1alpha1.Fallback) {}, "150/151"),
		Entry("with a quorum of a tenth", func(f *v1alpha1.Fallback) { f.BlockedWhen = &v1alpha1.BlockedWhen{Percent: ptr.To[int32](10)} }, "150/150"),
		Entry("with a quorum of two", func(f *v1alpha1.Fallback) { f.BlockedWhen = &v1alpha1.BlockedWhen{MinCount: ptr.To[int32](2)} }, "150/150"),
	)

	It("asks two blocked tiers for what runs and a probe, and reports what has no place", func() {
		v := view(10, builders.InOrder("a", "b"), named("a", pods(3, 2)), named("b", pods(3, 2)))
		Expect(desired(New(v))).To(Equal("10/9 O8"))
		v.Balancer.Spec.Policy.Fallback.Probe = ptr.To[int32](1)
		Expect(desired(New(v))).To(Equal("2/2 O8"))
	})

	DescribeTable("takes limits in percent of the total",
		func(replicas int, lo, hi, want string) {
			v := view(int32(replicas), builders.InOrder("a", "b"), named("a"), named("b"))
			v.Targets[0].Spec.MinReplicas, v.Targets[0].Spec.MaxReplicas = ptr.To(intstr.FromString(lo)), ptr.To(intstr.FromString(hi))
			v.Balancer.Spec.Targets[0] = v.Targets[0].Spec
			Expect(desired(New(v))).To(Equal(want))
		},
		Entry("the maximum, rounded up", 9, "0%", "50%", "5/4"),
		Entry("all", 9, "0%", "100%", "9/0"),
		Entry("none", 9, "0%", "0%", "0/9"),
		Entry("of the largest number", math.MaxInt32, "0%", "99%", "2126008811/21474836"),
	)
})

// missing is a target that must not be changed for that reason.
func missing(reason, message string) func(*target) {
	return func(t *target) { t.Hold = Hold{v1alpha1.PhaseScaleSubresource, reason, message} }
}

var _ = Describe("A condition", func() {
	pair := func() View { return view(10, builders.Even(), named("a", healthy(5)), named("b", healthy(5))) }

	DescribeTable("reports what keeps an autoscaler of the Balancer from working",
		func(want, mention string, change func(*View)) {
			v := pair()
			v.Autoscaler.Name = "hpa"
			change(&v)
			short, message := says(told(v), v1alpha1.ConditionTargetsResolved)
			Expect(short).To(Equal(want))
			Expect(message).To(ContainSubstring(mention))
		},
		Entry("nothing", "True Resolved", "all targets", func(*View) {}),
		Entry("another autoscaler of the same pods", "False AmbiguousSelector", "HorizontalPodAutoscaler other selects some of the same pods as hpa", func(v *View) { v.Autoscaler.Rival = "other" }),
		Entry("a pod of no target", "False ForeignPods", "pods that belong to no target", func(v *View) { v.Foreign = 1 }),
		Entry("a pod of two targets", "False SharedPods", "more than one target selects the same pods", func(v *View) { v.Shared = 1 }),
		Entry("pods without CPU requests", "False NoRequests", "HorizontalPodAutoscaler hpa needs the cpu requests of all containers, but some pods of target b have none",
			func(v *View) { v.Autoscaler.CPU, v.Targets[1].NoCPU = true, true }),
		Entry("pods without memory requests", "False NoRequests", "HorizontalPodAutoscaler hpa needs the memory requests of all containers, but some pods of target b have none",
			func(v *View) { v.Autoscaler.Memory, v.Targets[1].NoMemory = true, true }),
		Entry("not missing memory requests if it uses CPU", "True Resolved", "", func(v *View) { v.Autoscaler.CPU, v.Targets[1].NoMemory = true, true }),
		Entry("not missing CPU requests if it uses memory", "True Resolved", "", func(v *View) { v.Autoscaler.Memory, v.Targets[1].NoCPU = true, true }),
	)

	It("has the reason of the first target that cannot be scaled, and the messages of all", func() {
		s := told(view(10, builders.Even(), named("a"), named("b", missing("Autoscaled", "x")), named("c", missing("NotScalable", "y"))))
		short, message := says(s, v1alpha1.ConditionTargetsResolved)
		Expect(short).To(Equal("False Autoscaled"))
		Expect(message).To(Equal("target b: x; target c: y"))
		for _, kind := range []string{v1alpha1.ConditionBalancing, v1alpha1.ConditionReady} {
			_, message = says(s, kind)
			Expect(message).To(Equal("target b: x"), kind)
		}
		Expect(s.Targets[2].Message).To(Equal("y"))
	})

	It("has a message that the API server stores, however many targets cannot be scaled and whatever the reasons", func() {
		var targets []target
		for i := range 64 {
			targets = append(targets, named(fmt.Sprint("t", i), missing("OutOfReach", strings.Repeat("é", 300))))
		}
		for _, c := range told(view(10, builders.Even(), targets...)).Conditions {
			Expect(len(c.Message)).To(BeNumerically("<=", 32768), c.Type)
			Expect(utf8.ValidString(c.Message)).To(BeTrue())
		}
	})

	DescribeTable("reports whether all targets have the desired replicas",
		func(want string, paused bool, now Outcome, a target) {
			v := view(10, builders.Even(), a, named("b", healthy(5)))
			v.Balancer.Spec.Paused = paused
			short, _ := says(status(v, New(v), now), v1alpha1.ConditionBalanced)
			Expect(short).To(Equal(want))
		},
		Entry("all", "True AtGoal", false, Outcome{5, 5}, named("a", healthy(5))),
		Entry("all, although the Balancer is paused", "True AtGoal", true, Outcome{5, 5}, named("a", healthy(5))),
		Entry("not the first", "False Moving", false, Outcome{6, 5}, named("a", healthy(5))),
		Entry("not the last", "False Moving", false, Outcome{5, 4}, named("a", healthy(5))),
		Entry("not the last, because the Balancer is paused", "False Paused", true, Outcome{5, 4}, named("a", healthy(5))),
		Entry("all that can be seen", "True AtGoal", false, Outcome{0, 5}, named("a", lost)),
	)

	DescribeTable("names the targets whose replicas fail to start",
		func(want, message string, a, b target) {
			short, text := says(told(view(10, builders.Even(), a, b)), v1alpha1.ConditionFallbackActive)
			Expect(short).To(Equal(want))
			Expect(text).To(Equal(message))
		},
		Entry("none", "False NotNeeded", "no target is blocked", named("a", healthy(5)), named("b", healthy(5))),
		Entry("one", "True TargetsBlocked", "replicas fail to start in b, so other targets run more", named("a", healthy(5)), named("b", pods(5, 1))),
		Entry("two", "True TargetsBlocked", "replicas fail to start in a, b, so other targets run more", named("a", pods(5, 2)), named("b", pods(5, 1))),
	)

	// missing has target b absent for longer than the timeout.
	missing := func(v View) View {
		for range 2 {
			v = after(v, 2*time.Minute)
		}
		return v
	}

	It("does not report that other targets run more, if the missing one has no share", func() {
		v := missing(view(10, builders.InOrder("a", "b"), named("a", healthy(10)), named("b", absent)))
		short, text := says(told(v), v1alpha1.ConditionFallbackActive)
		Expect(short).To(Equal("False NotNeeded"))
		Expect(text).To(Equal("no target is blocked"))
		Expect(told(v).Targets[1]).To(And(HaveField("NotStarted", BeZero()), HaveField("BlockedSince", BeNil()), HaveField("Reason", "Autoscaled")))
		Expect(desired(New(v))).To(Equal("10/0"))
	})

	It("names one that does not exist and has a share", func() {
		v := missing(view(10, builders.Even(), named("a", healthy(5)), named("b", absent)))
		short, text := says(told(v), v1alpha1.ConditionFallbackActive)
		Expect(short).To(Equal("True TargetsBlocked"))
		Expect(text).To(Equal("replicas fail to start in b, so other targets run more"))
		Expect(desired(New(v))).To(Equal("10/5"))
	})

	It("names only the one with a share, whose replicas never go to the other", func() {
		v := view(10, builders.InOrder("a", "b", "c"), named("a", pods(10, 4)), named("b", absent), named("c", healthy(4)))
		Expect(desired(New(v))).To(Equal("10/0/4"))
		v = missing(v)
		_, text := says(told(v), v1alpha1.ConditionFallbackActive)
		Expect(text).To(Equal("replicas fail to start in a, so other targets run more"))
		Expect(desired(New(v))).To(Equal("10/0/4"))
	})

	DescribeTable("counts from the first replica what limits keep from the total",
		func(replicas int, want, message string, a, b target) {
			short, text := says(told(view(int32(replicas), builders.Even(), a, b)), v1alpha1.ConditionWithinLimits)
			Expect(short).To(Equal(want))
			Expect(text).To(HavePrefix(message))
		},
		Entry("one without room", 5, "False NoRoom", "no target has room for 1 of the 5 replicas", named("a", between(0, 2)), named("b", between(0, 2))),
		Entry("one too many in the minimums", 3, "False BelowMinimums", "the minimums of the targets exceed 3 replicas by 1", named("a", between(2, -1)), named("b", between(2, -1))),
		Entry("both, and each with its own number", 3, "False TooFewAndNoRoom", "the minimums of the targets exceed 3 replicas by 2, and no target has room for 4 replicas",
			named("a", between(4, 4), pods(4, 4)), named("b", between(1, 1), healthy(1))),
	)

	It("is one of six, in alphabetical order, with the generation that it is about", func() {
		s := told(pair())
		var kinds []string
		for _, c := range s.Conditions {
			kinds = append(kinds, c.Type)
		}
		Expect(kinds).To(HaveLen(6))
		Expect(slices.IsSorted(kinds)).To(BeTrue())
		Expect(s.ObservedGeneration).To(BeEquivalentTo(3))
	})

	It("refers to Ready, which contains the remedy, while nothing can be planned", func() {
		v := pair()
		v.Rival, v.Contested = "older", "b"
		for _, kind := range []string{v1alpha1.ConditionBalanced, v1alpha1.ConditionWithinLimits, v1alpha1.ConditionFallbackActive} {
			short, message := says(told(v), kind)
			Expect([]string{short, message}).To(Equal([]string{"Unknown Conflict", "see the condition Ready"}), kind)
		}
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionBalancing} {
			_, message := says(told(v), kind)
			Expect(message).To(HavePrefix("target b is scaled by the older Balancer older"), kind)
		}
	})
})

var _ = Describe("After a plan", func() {
	deployment := Object{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "default", Name: "b", Version: "7"}
	growing := func() View {
		v := view(10, builders.Even(), named("a", healthy(5), between(5, 5)), named("b", healthy(3)))
		v.Targets[1].Object = deployment
		return v
	}
	replicas := func(b *v1alpha1.Balancer) []int32 {
		return []int32{b.Status.Targets[0].Replicas, b.Status.Targets[1].Replicas}
	}

	It("the targets that move are written, and the status has what they are scaled to", func() {
		v := growing()
		b, asks := v.After(New(v))
		Expect(asks).To(Equal([]Ask{{Target: "b", Object: deployment, From: 3, To: 5}}))
		Expect(replicas(b)).To(Equal([]int32{5, 5}))
		Expect(b.Status.Targets[1]).To(And(HaveField("Desired", BeEquivalentTo(5)), HaveField("Base", BeEquivalentTo(5)), HaveField("UnstartedSince", BeNil())))
		Expect(v.Balancer.Status.Targets).To(BeEmpty(), "the Balancer of the view is unchanged")
	})

	DescribeTable("nothing is written, and the status has what there is",
		func(change func(*View)) {
			v := growing()
			change(&v)
			b, asks := v.After(New(v))
			Expect(asks).To(BeEmpty())
			Expect(replicas(b)).To(Equal([]int32{5, 3}))
		},
		Entry("if the Balancer is paused", func(v *View) { v.Balancer.Spec.Paused = true }),
		Entry("if it shares a target with an older one", func(v *View) { v.Rival, v.Contested = "older", "b" }),
	)

	It("nothing is written if a plan that was stopped has got as far as to a step", func() {
		v := growing()
		p := New(v)
		p.Stop.Reason = "Invalid"
		_, asks := v.After(p)
		Expect(asks).To(BeEmpty())
	})

	It("a target with replicas that start has the time since when they are missing", func() {
		v := growing()
		v.Targets[1].Current = 5
		Expect(told(v).Targets[1].UnstartedSince).To(HaveValue(Equal(before(0))))
	})

	It("the workload has the same name in every version of its kind", func() {
		Expect(deployment.ID()).To(Equal("deployments.apps/default/b"))
		newer := deployment
		newer.Resource.Version = "v2"
		Expect(newer.ID()).To(Equal(deployment.ID()))
	})
})
