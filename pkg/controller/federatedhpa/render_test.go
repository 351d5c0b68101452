// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan/plantest"
)

// stored is what an API server makes of a rendered autoscaler.
func stored(u *unstructured.Unstructured) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, h)).To(Succeed())
	return h
}

var _ = Describe("A rendered autoscaler", func() {
	behaving := func(s *Spec) {
		s.Behavior = &runtime.RawExtension{Raw: []byte(`{"scaleUp":{"stabilizationWindowSeconds":30,"louder":true}}`)}
	}

	It("has the template, the bounds, and what it is known by; and fields that are yet to come", func() {
		o := Federated(1, 10, withMetric("500m"), behaving)
		u, err := Rendered(o, Order{Operation: Create, Bounds: Bounds{Min: 2, Max: 7}, Epoch: 3})
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

	It("has an effect only on the object and version that it was decided on", func() {
		u, err := Rendered(Federated(1, 10), Order{Operation: Change, Bounds: Bounds{Min: 2, Max: 7}, Version: "17", UID: "a"})
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetResourceVersion()).To(Equal("17"))
		Expect(u.GetUID()).To(BeEquivalentTo("a"))
	})

	DescribeTable("has drifted, or has not",
		func(drifted bool, change func(*autoscalingv2.HorizontalPodAutoscaler)) {
			o := Federated(1, 10, withMetric("0.5"), behaving)
			u, err := Rendered(o, Order{Operation: Create, Bounds: Bounds{Min: 2, Max: 7}})
			Expect(err).NotTo(HaveOccurred())
			h := stored(u)
			change(h)
			Expect(Drifted(o, h)).To(Equal(drifted))
		},
		Entry("as it was made", false, func(*autoscalingv2.HorizontalPodAutoscaler) {}),
		Entry("with other bounds, which are not the template's", false, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MaxReplicas = 9 }),
		Entry("with a number written in another way", false, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Metrics[0].External.Target.AverageValue = quantity("500m")
		}),
		Entry("with a default filled in", false, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior.ScaleDown = &autoscalingv2.HPAScalingRules{}
		}),
		Entry("with another number", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Metrics[0].External.Target.AverageValue = quantity("501m")
		}),
		Entry("with a metric more", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Metrics = append(h.Spec.Metrics, h.Spec.Metrics[0])
		}),
		Entry("without metrics", true, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Metrics = nil }),
		Entry("with another behavior", true, func(h *autoscalingv2.HorizontalPodAutoscaler) {
			*h.Spec.Behavior.ScaleUp.StabilizationWindowSeconds = 31
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
		Entry("somebody else's", false, fields("kubectl", metav1.ManagedFieldsOperationUpdate, "")),
	)

	It("are seen in what the cache keeps", func() {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "shop"}}}
		u.SetManagedFields([]metav1.ManagedFieldsEntry{fields("kubectl", "Update", ""), fields("evenkeel-federatedhpa", "Update", "")})
		kept, err := StripAutoscaler(u)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.(*unstructured.Unstructured).GetManagedFields()).To(ConsistOf(Satisfy(Unclaimed)))
	})
})

var _ = Describe("Status", func() {
	state := func(v View, name string) string {
		for _, c := range status(v, NewPlan(v)).Clusters {
			if c.Name == name {
				return string(c.State) + " " + c.Reason
			}
		}
		return "absent"
	}

	DescribeTable("says what a cluster is",
		func(expected string, c Cluster) {
			Expect(state(view(Federated(1, 10), c), "a")).To(Equal(expected))
		},
		Entry(nil, "Used ", has("a", 1, 10, 3)),
		Entry(nil, "Joining ", none("a")),
		Entry(nil, "Frozen FailedGetResourceMetric", has("a", 1, 10, 3, inactive)),
		Entry(nil, "Unreachable NoContact", has("a", 1, 10, 3, away)),
		Entry(nil, "Unreachable ListRefused", has("a", 1, 10, 3, away, func(c *Cluster) { c.Fault = Hold{Reason: "ListRefused"} })),
		Entry(nil, "Refused RefusedForbidden", has("a", 1, 10, 3, func(c *Cluster) { c.Fault = Hold{Reason: "RefusedForbidden"} })),
		Entry(nil, "Refused AutoscaledTwice", has("a", 1, 10, 3, func(c *Cluster) { c.Foreign = Hold{Reason: "AutoscaledTwice"} })),
		Entry(nil, "Leaving ", has("a", 1, 10, 3, func(c *Cluster) { c.Selected = false })),
		Entry(nil, "Unreachable NotRegistered", has("a", 1, 10, 3, away, func(c *Cluster) { c.Registered, c.Selected = false, false })),
		Entry(nil, "absent", func() Cluster { c := none("a"); c.Selected = false; return c }()),
	)

	It("adds up what is known, and lets no plan without change look like one", func() {
		v := view(Federated(2, 20), has("a", 1, 12, 5), has("b", 1, 8, 3, readyCondition(2)))
		v.Object.Status = status(v, NewPlan(v))
		s := v.Object.Status
		Expect([]int32{s.CurrentReplicas, s.DesiredReplicas, s.ReadyReplicas, s.MinReplicas, s.MaxReplicas, s.CountedReplicas}).To(Equal([]int32{8, 8, 7, 2, 20, 20}))
		v.Now = noon.Add(5e9)
		Expect(status(v, NewPlan(v))).To(Equal(s), "time alone changes nothing")
	})

	It("has all conditions, sorted, with the generation", func() {
		s := status(view(Federated(2, 20), none("a")), NewPlan(view(Federated(2, 20), none("a"))))
		var types []string
		for _, c := range s.Conditions {
			Expect(c.ObservedGeneration).To(BeEquivalentTo(3))
			Expect(c.Message).NotTo(BeEmpty())
			types = append(types, c.Type)
		}
		Expect(types).To(Equal([]string{"Balanced", "ClustersUnreachable", "JoiningBlocked", "Limited", "MinExceeded", "OverCommitted", "Ready"}))
	})

	It("is ready with nobody to use only if it says so", func() {
		v := view(Federated(1, 10))
		Expect(condition(v, v1alpha1.ConditionReady)).To(Equal("False NoClusters"))
	})
})
