// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// stored is what an API server makes of a rendered autoscaler.
func stored(u *unstructured.Unstructured) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, h)).To(Succeed())
	return h
}

var _ = Describe("A rendered autoscaler", func() {
	behaving := func(s *Spec) {
		s.Behavior = &runtime.RawExtension{Raw: []byte(`{"scaleUp":{"stabilizationWindowSeconds":30,"louder":true},
			"scaleDown":{"stabilizationWindowSeconds":0,"tolerance":"0","policies":[{"type":"Pods","value":1,"periodSeconds":60}]}}`)}
	}

	It("has the template, the bounds, and what it is known by; and fields that are yet to come", func() {
		o := Federated(1, 10, withMetric("500m"), behaving)
		u, err := Rendered(o, plan.Order{Operation: plan.Create, Bounds: plan.Bounds{Min: 2, Max: 7}, Epoch: 3})
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetName()).To(Equal("shop"))
		Expect(u.GetResourceVersion()).To(BeEmpty())
		Expect(u.GetLabels()).To(HaveKeyWithValue("autoscaling.evenkeel.dev/federated-by", "one"))
		Expect(u.GetAnnotations()).To(HaveKeyWithValue("autoscaling.evenkeel.dev/epoch", "3"))
		louder, _, _ := unstructured.NestedBool(u.Object, "spec", "behavior", "scaleUp", "louder")
		Expect(louder).To(BeTrue())
		h := stored(u)
		Expect(*h.Spec.MinReplicas).To(BeEquivalentTo(2))
		Expect(h.Spec.MaxReplicas).To(BeEquivalentTo(7))
		Expect(h.Spec.ScaleTargetRef).To(Equal(autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}))
	})

	It("has numbers as the user wrote them, however large", func() {
		o := Federated(1, 10, func(s *Spec) {
			s.Behavior = &runtime.RawExtension{Raw: []byte(`{"scaleUp":{"large":9007199254740993,"largest":9223372036854775807,"broken":0.5}}`)}
		})
		u, err := Rendered(o, plan.Order{Operation: plan.Create, Bounds: plan.Bounds{Min: 2, Max: 7}})
		Expect(err).NotTo(HaveOccurred())
		up, _, _ := unstructured.NestedMap(u.Object, "spec", "behavior", "scaleUp")
		Expect(up).To(Equal(map[string]any{"large": int64(9007199254740993), "largest": int64(math.MaxInt64), "broken": 0.5}))
	})

	It("has an effect only on the object and version that it was decided on", func() {
		u, err := Rendered(Federated(1, 10), plan.Order{Operation: plan.Change, Bounds: plan.Bounds{Min: 2, Max: 7}, Version: "17", UID: "a"})
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetResourceVersion()).To(Equal("17"))
		Expect(u.GetUID()).To(BeEquivalentTo("a"))
	})

	DescribeTable("has drifted, or has not",
		func(drifted bool, change func(*autoscalingv2.HorizontalPodAutoscaler)) {
			o := Federated(1, 10, withMetric("0.5"), behaving)
			u, err := Rendered(o, plan.Order{Operation: plan.Create, Bounds: plan.Bounds{Min: 2, Max: 7}})
			Expect(err).NotTo(HaveOccurred())
			h := stored(u)
			change(h)
			Expect(Drifted(o, h)).To(Equal(drifted))
		},
		Entry("as it was made", false, func(*autoscalingv2.HorizontalPodAutoscaler) {}),
		Entry("with other bounds, which are not the template's", false, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MaxReplicas = 9 }),
		Entry("with a number written in another way", false, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Metrics[0].External.Target.AverageValue = ptr.To(resource.MustParse("500m"))
		}),
		Entry("with a default filled in", false, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior.ScaleDown.SelectPolicy = ptr.To(autoscalingv2.MaxChangePolicySelect)
		}),
		Entry("with another number", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Metrics[0].External.Target.AverageValue = ptr.To(resource.MustParse("501m"))
		}),
		Entry("with a metric more", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Metrics = append(h.Spec.Metrics, h.Spec.Metrics[0])
		}),
		Entry("without metrics", true, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Metrics = nil }),
		Entry("with another behavior", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			*h.Spec.Behavior.ScaleUp.StabilizationWindowSeconds = 31
		}),
		Entry("with a policy more", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior.ScaleDown.Policies = append(h.Spec.Behavior.ScaleDown.Policies, autoscalingv2.HPAScalingPolicy{Type: "Percent", Value: 100, PeriodSeconds: 15})
		}),
		Entry("with a number in place of a zero", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = ptr.To[int32](300)
		}),
		Entry("with a tolerance in place of none", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior.ScaleDown.Tolerance = ptr.To(resource.MustParse("0.5"))
		}),
		Entry("without behavior", true, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Behavior = nil }),
		Entry("with a policy where the template has none", false, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior.ScaleUp.Policies, h.Spec.Behavior.ScaleUp.SelectPolicy = h.Spec.Behavior.ScaleDown.Policies, ptr.To(autoscalingv2.MaxChangePolicySelect)
		}),
		Entry("on another workload", true, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.ScaleTargetRef.Name = "other" }),
		Entry("from another template", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Annotations["autoscaling.evenkeel.dev/template"] = "another"
		}),
	)
})

var _ = Describe("Fields that were created", func() {
	fields := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: metav1.NewFieldsV1("{}")}
	}

	DescribeTable("are to be claimed, or not",
		func(is bool, f metav1.ManagedFieldsEntry) { Expect(Unclaimed(f)).To(Equal(is)) },
		Entry("ours by update", true, fields("evenkeel-federatedhpa", metav1.ManagedFieldsOperationUpdate, "")),
		Entry("ours by apply", false, fields("evenkeel-federatedhpa", metav1.ManagedFieldsOperationApply, "")),
		Entry("ours of a subresource", false, fields("evenkeel-federatedhpa", metav1.ManagedFieldsOperationUpdate, "status")),
		Entry("another client's", false, fields("kubectl", metav1.ManagedFieldsOperationUpdate, "")),
	)

	It("are seen in what the cache keeps", func() {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "shop"}}}
		u.SetManagedFields([]metav1.ManagedFieldsEntry{fields("kubectl", "Update", ""), fields("evenkeel-federatedhpa", "Update", "")})
		kept, err := StripAutoscaler(u)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.(*unstructured.Unstructured).GetManagedFields()).To(ConsistOf(Satisfy(Unclaimed)))
	})
})
