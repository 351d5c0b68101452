// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// limit parses a number or a percentage.
func limit(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }

// valid is a spec with two targets after a change.
func valid(change func(*v1alpha1.BalancerSpec)) v1alpha1.BalancerSpec {
	spec := view(4, builders.Even(), named("a"), named("b")).Balancer.Spec
	for i := range spec.Targets {
		spec.Targets[i].ScaleTargetRef.Name = spec.Targets[i].Name
	}
	change(&spec)
	return spec
}

func bounded(lo, hi string) func(*v1alpha1.BalancerSpec) {
	return func(s *v1alpha1.BalancerSpec) {
		s.Targets[1].MinReplicas, s.Targets[1].MaxReplicas = limit(lo), limit(hi)
	}
}

func policy(p v1alpha1.BalancerPolicy) func(*v1alpha1.BalancerSpec) {
	return func(s *v1alpha1.BalancerSpec) { s.Policy = p }
}

func moving(surge, unavailable string) func(*v1alpha1.BalancerSpec) {
	return func(s *v1alpha1.BalancerSpec) {
		s.Transition = &v1alpha1.Transition{MaxSurge: limit(surge), MaxUnavailable: limit(unavailable)}
	}
}

var _ = DescribeTable("What is wrong with a spec",
	func(change func(*v1alpha1.BalancerSpec), says string) {
		what := Invalid(valid(change))
		if says == "" {
			Expect(what).To(BeEmpty())
			return
		}
		Expect(what).To(ContainSubstring(says))
	},
	Entry("nothing", func(*v1alpha1.BalancerSpec) {}, ""),
	Entry("two names", func(s *v1alpha1.BalancerSpec) { s.Targets[1].Name = "a" }, `two targets are named "a"`),
	Entry("one workload twice", func(s *v1alpha1.BalancerSpec) { s.Targets[1].ScaleTargetRef.Name = "a" }, `target "b" names the same workload as another target`),
	Entry("one workload twice, in two versions of its API", func(s *v1alpha1.BalancerSpec) {
		s.Targets[0].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.org/v1", Kind: "Widget", Name: "w"}
		s.Targets[1].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.org/v1beta1", Kind: "Widget", Name: "w"}
	}, `target "b" names the same workload as another target`),
	Entry("one workload twice, of a kind without a group", func(s *v1alpha1.BalancerSpec) {
		s.Targets[0].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "v1", Kind: "ReplicationController", Name: "w"}
		s.Targets[1].ScaleTargetRef = v1alpha1.ScaleTargetReference{Kind: "ReplicationController", Name: "w"}
	}, `target "b" names the same workload as another target`),
	Entry("workloads of one name, of two groups", func(s *v1alpha1.BalancerSpec) {
		s.Targets[0].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.org/v1", Kind: "Widget", Name: "w"}
		s.Targets[1].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.com/v1", Kind: "Widget", Name: "w"}
	}, ""),
	Entry("an empty selector", func(s *v1alpha1.BalancerSpec) { s.Selector = metav1.LabelSelector{} }, "an empty selector matches every pod"),
	Entry("an invalid selector", func(s *v1alpha1.BalancerSpec) {
		s.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	}, "selector: "),
	Entry("a selector by label and by expression", func(s *v1alpha1.BalancerSpec) {
		s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}
	}, ""),
	Entry("no wrong bounds", bounded("2", "5"), ""),
	Entry("a minimum alone", func(s *v1alpha1.BalancerSpec) { s.Targets[1].MinReplicas = limit("2") }, ""),
	Entry("a maximum alone", func(s *v1alpha1.BalancerSpec) { s.Targets[1].MaxReplicas = limit("2") }, ""),
	Entry("equal bounds", bounded("5", "5"), ""),
	Entry("bounds that cross", bounded("6", "5"), "minReplicas must not be above maxReplicas"),
	Entry("percentages", bounded("0%", "100%"), ""),
	Entry("equal percentages, of everything", bounded("100%", "100%"), ""),
	Entry("percentages that cross", bounded("51%", "50%"), "minReplicas must not be above maxReplicas"),
	Entry("a number and a percentage, which depend on the total", bounded("9", "1%"), ""),
	Entry("a negative bound", bounded("-1", "5"), `target "b": bound -1: use a number from 0`),
	Entry("a negative maximum", bounded("0", "-1"), "bound -1"),
	Entry("a percentage above 100", bounded("0%", "101%"), "bound 101%"),
	Entry("a negative percentage", bounded("-1%", "100%"), "bound -1%"),
	Entry("a text without a percent sign", bounded("1", "many"), "bound many"),
	Entry("a number as a text", func(s *v1alpha1.BalancerSpec) { s.Targets[1].MinReplicas = ptr.To(intstr.FromString("50")) }, "bound 50"),
	Entry("a percentage without a number", bounded("1", "%"), "bound %"),
	Entry("a huge percentage", bounded("1", "9999999999%"), "bound 9999999999%"),
	Entry("a transition", moving("25%", "0"), ""),
	Entry("a wrong surge", moving("-1", "0"), "transition: use numbers from 0"),
	Entry("a wrong number of unavailable ones", moving("1", "101%"), "transition: use numbers from 0"),
	Entry("an unknown policy", policy(v1alpha1.BalancerPolicy{PolicyName: "odd"}), `policyName "odd" is not known`),
	Entry("priority without an order", policy(v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Priority}), "policyName priority requires the field priorities"),
	Entry("proportional without proportions", policy(v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Proportional}), "policyName proportional requires the field proportions"),
	Entry("tiers without tiers", policy(v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Tiers}), "policyName tiers requires the field tiers"),
	Entry("priority", policy(builders.InOrder("a", "b")), ""),
	Entry("proportional", policy(builders.Shares(1, 2)), ""),
	Entry("a fallback with both timeouts", policy(v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Even, Fallback: builders.Fallback(func(f *v1alpha1.Fallback) {
		f.StartupTimeout = &metav1.Duration{Duration: time.Minute}
	})}), "fallback: set exactly one"),
	Entry("a fallback with no timeout", policy(v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Even, Fallback: &v1alpha1.Fallback{}}), "fallback: set exactly one"),
	Entry("as many targets as there may be", many(256), ""),
	Entry("too many targets", many(257), "more than 256 targets"),
)

// many is a spec with so many targets.
func many(n int) func(*v1alpha1.BalancerSpec) {
	return func(s *v1alpha1.BalancerSpec) {
		one := s.Targets[0]
		s.Targets = nil
		for i := range n {
			one.Name = fmt.Sprint("t", i)
			one.ScaleTargetRef.Name = one.Name
			s.Targets = append(s.Targets, one)
		}
	}
}

var _ = DescribeTable("How many replicas a move may add, and remove while they are ready",
	func(t *v1alpha1.Transition, all int64, machines bool, surge, unavailable int64) {
		s, u := Limits(t, all, machines)
		Expect([]int64{s, u}).To(Equal([]int64{surge, unavailable}))
	},
	Entry("a quarter", nil, int64(8), false, int64(2), int64(0)),
	Entry("a quarter, rounded up", nil, int64(9), false, int64(3), int64(0)),
	Entry("a quarter of many", nil, int64(400), false, int64(100), int64(0)),
	Entry("one at least", nil, int64(0), false, int64(1), int64(0)),
	Entry("one machine", nil, int64(100), true, int64(1), int64(0)),
	Entry("what is set", &v1alpha1.Transition{MaxSurge: limit("3"), MaxUnavailable: limit("2")}, int64(100), false, int64(3), int64(2)),
	Entry("what is set, also for machines", &v1alpha1.Transition{MaxSurge: limit("3")}, int64(100), true, int64(3), int64(0)),
	Entry("percentages, rounded up", &v1alpha1.Transition{MaxSurge: limit("10%"), MaxUnavailable: limit("10%")}, int64(11), false, int64(2), int64(2)),
	Entry("percentages without a rest", &v1alpha1.Transition{MaxSurge: limit("10%"), MaxUnavailable: limit("10%")}, int64(10), false, int64(1), int64(1)),
	Entry("a quarter beside what is set", &v1alpha1.Transition{MaxUnavailable: limit("1")}, int64(8), false, int64(2), int64(1)),
	Entry("no surge", &v1alpha1.Transition{MaxSurge: limit("0"), MaxUnavailable: limit("1")}, int64(8), false, int64(0), int64(1)),
	Entry("neither, so one", &v1alpha1.Transition{MaxSurge: limit("0"), MaxUnavailable: limit("0")}, int64(8), false, int64(1), int64(0)),
)
