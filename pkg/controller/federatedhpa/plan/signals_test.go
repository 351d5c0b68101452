// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
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

// inTotal is a metric of the whole workload with a target per pod. Autoscalers round its average up to a thousandth.
func inTotal(target, average string) reading {
	r := external(target, average)
	r.spec.External.Target = autoscalingv2.MetricTarget{AverageValue: quantity(target)}
	r.status.External.Current = autoscalingv2.MetricValueStatus{AverageValue: quantity(average)}
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
		Entry("a value", says("TooManyReplicas", external("10", "13")), "Max", 13),
		Entry("a value on an object", says("TooManyReplicas", onObject("10", "17")), "Max", 17),
		Entry("its part of a total", says("TooManyReplicas", inTotal("1", "2500m")), "Max", 25),
		Entry("no more than the total of 43329m, though its average is rounded up", says("TooManyReplicas", inTotal("3333m", "4333m")), "Max", 13),
		Entry("nothing, where the total is nothing", says("TooFewReplicas", inTotal("1", "0")), "Min", 0),
		Entry("the most of several", says("TooManyReplicas", utilization(50, 60), external("10", "19"), perPod("1", "1500m")), "Max", 19),
		Entry("at most four times what runs, since metrics are noisy", says("TooManyReplicas", external("1", "1000")), "Max", 40),
		Entry("one more than it may have, where metrics say nothing", says("TooManyReplicas"), "Max", 11),
		Entry("one more, where metrics say less than the condition", says("TooManyReplicas", utilization(50, 40)), "Max", 11),
		Entry("what it has, where only the rate limits it", says("ScaleUpLimit", utilization(50, 120)), "Rate", 10),
		Entry("what it has, where nothing limits it", says("DesiredWithinRange", utilization(50, 52)), "", 10),
		Entry("no division by zero", says("TooManyReplicas", external("0", "3")), "Max", 11),
		Entry("fewer than its minimum", says("TooFewReplicas", utilization(50, 5)), "Min", 1),
		Entry("nothing known, below its minimum", says("TooFewReplicas"), "Min", 0),
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

	It("has no opinion where it is not active", func() {
		h := says("TooManyReplicas")
		h.Status.Conditions = append(h.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetExternalMetric", Message: "no"})
		Expect(plan.LocalOf(h).Inactive).To(Equal(plan.Hold{Reason: "FailedGetExternalMetric", Message: "no"}))
	})
})
