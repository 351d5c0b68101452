// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// reading is a metric and what was read of it.
type reading struct {
	spec   autoscalingv2.MetricSpec
	status autoscalingv2.MetricStatus
}

func utilization(target, current int32) reading {
	return reading{
		autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: autoscalingv2.MetricTarget{AverageUtilization: &target}}},
		autoscalingv2.MetricStatus{Type: "Resource", Resource: &autoscalingv2.ResourceMetricStatus{Name: "cpu", Current: autoscalingv2.MetricValueStatus{AverageUtilization: &current}}},
	}
}

func quantity(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

func perPod(target, current string) reading {
	name := autoscalingv2.MetricIdentifier{Name: "requests"}
	return reading{
		autoscalingv2.MetricSpec{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: name, Target: autoscalingv2.MetricTarget{AverageValue: quantity(target)}}},
		autoscalingv2.MetricStatus{Type: "Pods", Pods: &autoscalingv2.PodsMetricStatus{Metric: name, Current: autoscalingv2.MetricValueStatus{AverageValue: quantity(current)}}},
	}
}

func external(target, current string) reading {
	name := autoscalingv2.MetricIdentifier{Name: "queue"}
	return reading{
		autoscalingv2.MetricSpec{Type: "External", External: &autoscalingv2.ExternalMetricSource{Metric: name, Target: autoscalingv2.MetricTarget{Value: quantity(target)}}},
		autoscalingv2.MetricStatus{Type: "External", External: &autoscalingv2.ExternalMetricStatus{Metric: name, Current: autoscalingv2.MetricValueStatus{Value: quantity(current)}}},
	}
}

func onObject(target, current string) reading {
	name, on := autoscalingv2.MetricIdentifier{Name: "hits"}, autoscalingv2.CrossVersionObjectReference{Kind: "Ingress", Name: "shop"}
	return reading{
		autoscalingv2.MetricSpec{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{Metric: name, DescribedObject: on, Target: autoscalingv2.MetricTarget{Value: quantity(target)}}},
		autoscalingv2.MetricStatus{Type: "Object", Object: &autoscalingv2.ObjectMetricStatus{Metric: name, DescribedObject: on, Current: autoscalingv2.MetricValueStatus{Value: quantity(current)}}},
	}
}

// labelled selects the series of a metric by a label.
func labelled(value string, r reading) reading {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"queue": value}}
	switch r.spec.Type {
	case "Pods":
		r.spec.Pods.Metric.Selector, r.status.Pods.Metric.Selector = selector, selector.DeepCopy()
	case "Object":
		r.spec.Object.Metric.Selector, r.status.Object.Metric.Selector = selector, selector.DeepCopy()
	default:
		r.spec.External.Metric.Selector, r.status.External.Metric.Selector = selector, selector.DeepCopy()
	}
	return r
}

// inTotal is a metric of the whole workload with a target per pod. Autoscalers round its average up to a thousandth.
func inTotal(target, average string) reading {
	r := external(target, average)
	r.spec.External.Target = autoscalingv2.MetricTarget{AverageValue: quantity(target)}
	r.status.External.Current = autoscalingv2.MetricValueStatus{AverageValue: quantity(average)}
	return r
}

func onObjectInTotal(target, average string) reading {
	r := onObject(target, average)
	r.spec.Object.Target = autoscalingv2.MetricTarget{AverageValue: quantity(target)}
	r.status.Object.Current = autoscalingv2.MetricValueStatus{AverageValue: quantity(average)}
	return r
}

func inContainer(target, current int32) reading {
	return reading{
		autoscalingv2.MetricSpec{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "cpu", Container: "a", Target: autoscalingv2.MetricTarget{AverageUtilization: &target}}},
		autoscalingv2.MetricStatus{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{Name: "cpu", Container: "a", Current: autoscalingv2.MetricValueStatus{AverageUtilization: &current}}},
	}
}

// says is an autoscaler of 2..10 that runs 10, is limited for a reason, and has read these.
func says(reason string, all ...reading) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: ptr.To[int32](2), MaxReplicas: 10}}
	h.Status.CurrentReplicas, h.Status.DesiredReplicas = 10, 10
	if reason == "TooFewReplicas" {
		h.Status.DesiredReplicas = 2
	}
	h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionTrue, Reason: reason}}
	for _, r := range all {
		h.Spec.Metrics, h.Status.CurrentMetrics = append(h.Spec.Metrics, r.spec), append(h.Status.CurrentMetrics, r.status)
	}
	return h
}

var _ = Describe("A cluster's autoscaler", func() {
	DescribeTable("calls for",
		func(h *autoscalingv2.HorizontalPodAutoscaler, limit string, demand int) {
			l := plan.LocalOf(h)
			Expect(l.Limit).To(Equal(v1alpha1.LimitedBy(limit)))
			Expect(l.Demand).To(BeEquivalentTo(demand))
		},
		Entry("utilization", says("TooManyReplicas", utilization(50, 120)), "Max", 24),
		Entry("what a container uses", says("TooManyReplicas", inContainer(50, 75)), "Max", 15),
		Entry("a value per pod", says("TooManyReplicas", perPod("100m", "150m")), "Max", 15),
		Entry("a value per pod, of which nothing was rounded", says("TooManyReplicas", perPod("1", "1201m")), "Max", 13),
		Entry("a value", says("TooManyReplicas", external("10", "13")), "Max", 13),
		Entry("a value on an object", says("TooManyReplicas", onObject("10", "17")), "Max", 17),
		Entry("its part of a total", says("TooManyReplicas", inTotal("1", "2500m")), "Max", 25),
		Entry("no more than the total of 43329m, though its average is rounded up", says("TooManyReplicas", inTotal("3333m", "4333m")), "Max", 13),
		Entry("nothing, where the total is nothing", says("TooFewReplicas", inTotal("1", "0")), "Min", 0),
		Entry("the most of several", says("TooManyReplicas", utilization(50, 60), external("10", "19"), perPod("1", "1500m")), "Max", 19),
		Entry("what each of several queues needs, by its own target", says("TooManyReplicas", labelled("a", external("1000", "900")), labelled("b", external("10", "13"))), "Max", 13),
		Entry("what is read of one object by another selector", says("TooManyReplicas", labelled("a", onObject("10", "9")), labelled("b", onObject("1000", "1300"))), "Max", 13),
		Entry("what is read of pods by another selector", says("TooManyReplicas", labelled("a", perPod("1", "500m")), labelled("b", perPod("100", "130"))), "Max", 13),
		Entry("at most four times what runs, since metrics are noisy", says("TooManyReplicas", external("1", "1000")), "Max", 40),
		Entry("one more than it may have, where metrics say nothing", says("TooManyReplicas"), "Max", 11),
		Entry("one more, where metrics say less than the condition", says("TooManyReplicas", utilization(50, 40)), "Max", 11),
		Entry("what it has, where only the rate limits it", says("ScaleUpLimit", utilization(50, 120)), "Rate", 10),
		Entry("what it has, where nothing limits it", says("DesiredWithinRange", utilization(50, 52)), "", 10),
		Entry("no division by zero", says("TooManyReplicas", external("0", "3")), "Max", 11),
		Entry("fewer than its minimum", says("TooFewReplicas", utilization(50, 5)), "Min", 1),
		Entry("nothing known, below its minimum", says("TooFewReplicas"), "Min", 0),
		Entry("nothing known, where another metric was read", says("TooFewReplicas", but(utilization(50, 5), func(r *reading) { r.status.Resource.Name = "memory" })), "Min", 0),
		Entry("nothing known, where the numbers are beyond all measure", says("TooFewReplicas", external("1E999", "1E999")), "Min", 0),
		Entry("one fewer than its minimum, where metrics say more than the condition", says("TooFewReplicas", utilization(50, 60)), "Min", 1),
		Entry("nothing known, where nothing was measured", says("TooFewReplicas", but(utilization(50, 5), func(r *reading) { r.status.Resource.Current.AverageUtilization = nil })), "Min", 0),
		Entry("a value, though its average was measured, too", says("TooManyReplicas", but(external("10", "13"), func(r *reading) { r.status.External.Current.AverageValue = quantity("2") })), "Max", 13),
		Entry("no more than a total on an object, though its average is rounded up", says("TooManyReplicas", onObjectInTotal("3333m", "4333m")), "Max", 13),
		Entry("an average, though its utilization was measured, too", says("TooManyReplicas", but(perPod("100m", "150m"), func(r *reading) { r.status.Pods.Current.AverageUtilization = ptr.To[int32](120) })), "Max", 15),
		Entry("the one of several that can be read", says("TooManyReplicas", external("1E999", "1E999"), utilization(50, 120)), "Max", 24),
		Entry("as much as the target, however small that is", says("TooManyReplicas", utilization(1, 2)), "Max", 20),
		Entry("exactly what a metric asks for, in spite of inexact numbers", says("TooManyReplicas", perPod("1400m", "2100m")), "Max", 15),
	)

	It("is not limited by bounds that it has not seen yet", func() {
		raised := says("TooManyReplicas", utilization(50, 120))
		raised.Spec.MaxReplicas = 12
		Expect(plan.LocalOf(raised).Limit).To(BeEmpty())
		Expect(plan.LocalOf(raised).Demand).To(BeEquivalentTo(10))
		lowered := says("TooFewReplicas", utilization(50, 5))
		*lowered.Spec.MinReplicas = 1
		Expect(plan.LocalOf(lowered).Limit).To(BeEmpty())
	})

	DescribeTable("that has scaled its workload to 0 would be turned off by a minimum above 0",
		func(is bool, change func(h *autoscalingv2.HorizontalPodAutoscaler)) {
			h := says("TooFewReplicas")
			*h.Spec.MinReplicas, h.Status.CurrentReplicas, h.Status.DesiredReplicas = 0, 0, 0
			change(h)
			Expect(plan.LocalOf(h).AtZero).To(Equal(is))
		},
		Entry("before Kubernetes 1.36", true, func(*autoscalingv2.HorizontalPodAutoscaler) {}),
		Entry("unless the cluster tells 0 replicas of an autoscaler from those of a person", false, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Status.Conditions = append(h.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScaledToZero, Status: corev1.ConditionTrue})
		}),
		Entry("unless it wants more by now", false, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.DesiredReplicas = 1 }),
		Entry("unless it has such a minimum already", false, func(h *autoscalingv2.HorizontalPodAutoscaler) { *h.Spec.MinReplicas = 1 }),
		Entry("unless it is new and has yet to look", false, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.Conditions = nil }),
	)

	It("has no opinion where it is not active", func() {
		h := says("TooManyReplicas")
		h.Status.Conditions = append(h.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetExternalMetric", Message: "no"})
		Expect(plan.LocalOf(h).Inactive).To(Equal(plan.Hold{Reason: "FailedGetExternalMetric", Message: "no"}))
	})

	DescribeTable("says nothing by a metric that does not fit its target",
		func(r reading, change func(*reading)) {
			Expect(plan.LocalOf(says("TooManyReplicas", but(r, change))).Demand).To(BeEquivalentTo(11))
		},
		Entry("another type", utilization(50, 120), func(r *reading) { r.status.Type = "ContainerResource" }),
		Entry("another resource", utilization(50, 120), func(r *reading) { r.status.Resource.Name = "memory" }),
		Entry("a resource without its target", utilization(50, 120), func(r *reading) { r.spec.Resource = nil }),
		Entry("a resource without its value", utilization(50, 120), func(r *reading) { r.status.Resource = nil }),
		Entry("another resource of a container", inContainer(50, 75), func(r *reading) { r.status.ContainerResource.Name = "memory" }),
		Entry("another container", inContainer(50, 75), func(r *reading) { r.status.ContainerResource.Container = "b" }),
		Entry("a container without its target", inContainer(50, 75), func(r *reading) { r.spec.ContainerResource = nil }),
		Entry("a container without its value", inContainer(50, 75), func(r *reading) { r.status.ContainerResource = nil }),
		Entry("another metric of pods", perPod("1", "2"), func(r *reading) { r.status.Pods.Metric.Name = "errors" }),
		Entry("pods without their target", perPod("1", "2"), func(r *reading) { r.spec.Pods = nil }),
		Entry("pods without their value", perPod("1", "2"), func(r *reading) { r.status.Pods = nil }),
		Entry("another metric of an object", onObject("10", "17"), func(r *reading) { r.status.Object.Metric.Name = "errors" }),
		Entry("another object", onObject("10", "17"), func(r *reading) { r.status.Object.DescribedObject.Name = "blog" }),
		Entry("an object without its target", onObject("10", "17"), func(r *reading) { r.spec.Object = nil }),
		Entry("an object without its value", onObject("10", "17"), func(r *reading) { r.status.Object = nil }),
		Entry("another external metric", external("10", "13"), func(r *reading) { r.status.External.Metric.Name = "errors" }),
		Entry("an external metric without its target", external("10", "13"), func(r *reading) { r.spec.External = nil }),
		Entry("an external metric without its value", external("10", "13"), func(r *reading) { r.status.External = nil }),
		Entry("a utilization that was not measured", utilization(50, 120), func(r *reading) { r.status.Resource.Current.AverageUtilization = nil }),
		Entry("a utilization of nothing", utilization(0, 120), func(*reading) {}),
		Entry("an average that was not measured", perPod("1", "2"), func(r *reading) { r.status.Pods.Current.AverageValue = nil }),
		Entry("an average of nothing", perPod("0", "2"), func(*reading) {}),
		Entry("a value without a target", external("10", "13"), func(r *reading) { r.spec.External.Target.Value = nil }),
		Entry("a value that was not measured", external("10", "13"), func(r *reading) { r.status.External.Current.Value = nil }),
	)

	DescribeTable("needs fewer than its minimum of 5",
		func(r reading, demand int) {
			h := says("TooFewReplicas", r)
			*h.Spec.MinReplicas, h.Status.DesiredReplicas = 5, 5
			Expect(plan.LocalOf(h).Demand).To(BeEquivalentTo(demand))
		},
		Entry("as its metrics say", utilization(50, 10), 2),
		Entry("at least one fewer, whatever its metrics say", utilization(50, 50), 4),
		Entry("some, where the numbers are small", utilization(50, 1), 1),
	)

	It("needs none, though its minimum of 1 does not allow that", func() {
		h := says("TooFewReplicas", utilization(50, 20))
		*h.Spec.MinReplicas, h.Status.DesiredReplicas = 1, 1
		Expect(plan.LocalOf(h).Demand).To(BeZero())
	})

	It("is limited only while its condition is true", func() {
		h := says("TooManyReplicas", utilization(50, 120))
		h.Status.Conditions[0].Status = corev1.ConditionFalse
		Expect(plan.LocalOf(h).Limit).To(BeEmpty())
		Expect(plan.LocalOf(h).Demand).To(BeEquivalentTo(10))
		Expect(plan.LocalOf(h).Inactive).To(BeZero(), "an autoscaler without a limit is active")
	})

	It("is limited whatever else is true of it", func() {
		h := says("TooManyReplicas", utilization(50, 120))
		h.Status.Conditions = append(h.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound"})
		Expect(plan.LocalOf(h).Limit).To(Equal(v1alpha1.ByMax))
		Expect(plan.LocalOf(h).Inactive).To(BeZero())
	})

	It("needs no more replicas than it runs for a total, even where the autoscaler rounded up", func() {
		h := says("TooManyReplicas", inTotal("1", "1001m"))
		h.Spec.MaxReplicas, h.Status.CurrentReplicas = 10, 100
		Expect(plan.LocalOf(h).Demand).To(BeEquivalentTo(100))
	})

	DescribeTable("has bounds and replicas that make sense, whatever it reports",
		func(lo *int32, hi, current, desired int32, expected plan.Bounds, runs, wished int) {
			h := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: lo, MaxReplicas: hi}}
			h.ResourceVersion, h.UID = "7", "u"
			h.Status.CurrentReplicas, h.Status.DesiredReplicas = current, desired
			l := plan.LocalOf(h)
			Expect(l.Bounds).To(Equal(expected))
			Expect([]int64{l.Current, l.Desired}).To(Equal([]int64{int64(runs), int64(wished)}))
			Expect([]string{l.Version, l.UID}).To(Equal([]string{"7", "u"}))
		},
		Entry("as usual", ptr.To[int32](2), int32(10), int32(3), int32(4), plan.Bounds{Min: 2, Max: 10}, 3, 4),
		Entry("no minimum, which means 1", nil, int32(10), int32(0), int32(0), plan.Bounds{Min: 1, Max: 10}, 0, 0),
		Entry("a minimum of zero", ptr.To[int32](0), int32(10), int32(0), int32(0), plan.Bounds{Min: 0, Max: 10}, 0, 0),
		Entry("a minimum above the maximum", ptr.To[int32](12), int32(10), int32(3), int32(4), plan.Bounds{Min: 10, Max: 10}, 3, 4),
		Entry("negative numbers", ptr.To[int32](-2), int32(-3), int32(-4), int32(-5), plan.Bounds{Min: 0, Max: 1}, 0, 0),
		Entry("no maximum", ptr.To[int32](1), int32(0), int32(3), int32(4), plan.Bounds{Min: 1, Max: 1}, 3, 4),
	)

	DescribeTable("keeps a limit only as long as it is at that bound",
		func(reason string, desired int32, limit string) {
			h := says(reason)
			h.Status.DesiredReplicas = desired
			Expect(plan.LocalOf(h).Limit).To(BeEquivalentTo(limit))
		},
		Entry("at its maximum", "TooManyReplicas", int32(10), "Max"),
		Entry("below its maximum", "TooManyReplicas", int32(9), ""),
		Entry("above a maximum that was lowered", "TooManyReplicas", int32(12), "Max"),
		Entry("at its minimum", "TooFewReplicas", int32(2), "Min"),
		Entry("above its minimum", "TooFewReplicas", int32(3), ""),
		Entry("below a minimum that was raised", "TooFewReplicas", int32(1), "Min"),
		Entry("scaled up as fast as allowed", "ScaleUpLimit", int32(5), "Rate"),
		Entry("scaled down as fast as allowed", "ScaleDownLimit", int32(5), "Rate"),
	)
})

var _ = Describe("What a cluster says of itself", func() {
	shown := func(reason, message string) plan.Hold {
		v := view(Federated(1, 10), has("a", 1, 10, 3, func(c *plan.Cluster) { c.Fault = plan.Hold{Reason: reason, Message: message} }))
		s := plan.NewStatus(v, plan.New(v)).Clusters[0]
		return plan.Hold{Reason: s.Reason, Message: s.Message}
	}
	token := "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYm1y" // 40 characters

	DescribeTable("is shown on one line, without addresses and credentials",
		func(message, expected string) { Expect(shown("RefusedInvalid", message).Message).To(Equal(expected)) },
		Entry("a sentence", "spec.metrics: at most 5 items", "spec.metrics: at most 5 items"),
		Entry("other scripts", "não há memória", "não há memória"),
		Entry("lines and tabs", " one\n\ttwo\r\nthree ", "one two three"),
		Entry("characters that do not print", "a\x00b\u200bc\x1b[1m", "abc[1m"),
		Entry("a URL", "get https://10.0.0.1:6443/api?x=y: refused", "get (address) refused"),
		Entry("an IPv4 address", "dial tcp 10.0.0.1:6443: refused", "dial tcp (address): refused"),
		Entry("an IPv6 address", "dial tcp [fd00::1]:6443: refused", "dial tcp (address): refused"),
		Entry("a credential", "Bearer abc.def is not valid", "Bearer (hidden) is not valid"),
		Entry("a named credential", `password="hunter2" is not valid`, `password (hidden)" is not valid`),
		Entry("a long word with digits", "the header "+token+" is invalid", "the header (hidden) is invalid"),
		Entry("a word with digits that is no credential by its length", token[1:], token[1:]),
		Entry("a long word without digits, such as the name of a field", strings.Repeat("abcde", 9), strings.Repeat("abcde", 9)),
	)

	It("is shown up to a length of 300 characters", func() {
		sentence := strings.Repeat("äö ", 99) + "äöü"
		Expect([]rune(sentence)).To(HaveLen(300))
		Expect(shown("RefusedInvalid", sentence).Message).To(Equal(sentence))
		longer := shown("RefusedInvalid", sentence+"ß").Message
		Expect([]rune(longer)).To(HaveLen(300))
		Expect(longer).To(Equal(strings.Repeat("äö ", 99) + "äö…"))
	})

	It("is not read beyond 4800 bytes", func() {
		Expect(shown("RefusedInvalid", strings.Repeat(" ", 4799)+"ab").Message).To(Equal("a"))
	})

	DescribeTable("has a reason of letters and digits",
		func(reason, expected string) { Expect(shown(reason, "").Reason).To(Equal(expected)) },
		Entry("as usual", "RefusedInvalid", "RefusedInvalid"),
		Entry("with digits", "Refused404", "Refused404"),
		Entry("without other characters", "Refused: see\n<b>", "Refusedseeb"),
		Entry("without other scripts", "Refusé", "Refus"),
		Entry("of up to 64 characters", strings.Repeat("Refused9", 8)+"more", strings.Repeat("Refused9", 8)),
	)
})
