// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

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
