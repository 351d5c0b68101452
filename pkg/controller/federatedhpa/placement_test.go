// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"errors"
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
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

const hubManager = "evenkeel-federatedhpa"

// recording is a cluster that records who owns which fields, as a real one does.
type recording struct {
	*sim.Server
	client dynamic.ResourceInterface
}

func newRecording() recording {
	s := sim.New(sim.Options{Seed: 1, Resources: memberServes, ManagedFields: true})
	DeferCleanup(s.Close)
	return recording{s, dynamic.NewForConfigOrDie(s.ConfigFor("hub")).Resource(hpaGVR).Namespace("default")}
}

// autoscalerWith is an autoscaler for up to so many replicas, with an annotation if it is not empty.
func autoscalerWith(most int64, note string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "shop", "namespace": "default"},
		"spec": map[string]any{"maxReplicas": most, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}},
	}}
	if note != "" {
		u.SetAnnotations(map[string]string{"note": note})
	}
	return u
}

// operations are how this hub owns fields of an object.
func operations(u *unstructured.Unstructured) (all []metav1.ManagedFieldsOperationType) {
	for _, f := range u.GetManagedFields() {
		if f.Manager == hubManager {
			all = append(all, f.Operation)
		}
	}
	return all
}

var _ = Describe("Fields of an autoscaler that was created", func() {
	create := plan.Order{Operation: plan.Create}
	change := func(u *unstructured.Unstructured, claimed bool) plan.Order {
		return plan.Order{Operation: plan.Change, UID: string(u.GetUID()), Version: u.GetResourceVersion(), Unclaimed: !claimed}
	}
	send := func(ctx context.Context, r recording, o plan.Order, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return SendOrder(ctx, r.client, o, "shop", wanted)
	}

	It("are claimed, so that a change that leaves one out removes it", func(ctx SpecContext) {
		r := newRecording()
		made, err := send(ctx, r, create, autoscalerWith(3, "old"))
		Expect(err).NotTo(HaveOccurred())
		Expect(operations(made)).To(Equal([]metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply}))
		changed, err := send(ctx, r, change(made, true), autoscalerWith(5, ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.GetAnnotations()).To(BeEmpty())
		Expect(unstructuredInt(changed, "spec", "maxReplicas")).To(BeEquivalentTo(5))
	})

	It("are claimed before the first change, if they could not be at once", func(ctx SpecContext) {
		r := newRecording()
		refused := true
		r.OnWrite(func(w sim.Write) error {
			if refused && w.Verb == "patch" {
				return apierrors.NewForbidden(schema.GroupResource{}, "shop", errors.New("not now"))
			}
			return nil
		})
		made, err := send(ctx, r, create, autoscalerWith(3, "old"))
		Expect(err).NotTo(HaveOccurred())
		Expect(operations(made)).To(Equal([]metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationUpdate}))

		By("a claim that fails, which is not taken for a change")
		_, err = send(ctx, r, change(made, false), autoscalerWith(5, ""))
		Expect(apierrors.IsForbidden(err)).To(BeTrue())

		By("a claim, and then the change")
		refused = false
		claimed, err := send(ctx, r, change(made, false), autoscalerWith(5, ""))
		Expect(err).To(MatchError(ErrUnclaimed))
		Expect(operations(claimed)).To(Equal([]metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply}))
		Expect(unstructuredInt(claimed, "spec", "maxReplicas")).To(BeEquivalentTo(3))
		changed, err := send(ctx, r, change(claimed, true), autoscalerWith(5, ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.GetAnnotations()).To(BeEmpty())
	})

	It("are not claimed of an autoscaler that was created anew, or does not exist", func(ctx SpecContext) {
		r := newRecording()
		_, err := send(ctx, r, change(autoscalerWith(3, ""), false), autoscalerWith(5, ""))
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		theirs, err := r.client.Create(ctx, autoscalerWith(3, "old"), metav1.CreateOptions{FieldManager: hubManager})
		Expect(err).NotTo(HaveOccurred())
		other := change(theirs, false)
		other.UID = "former"
		is, err := send(ctx, r, other, autoscalerWith(5, ""))
		Expect(err).To(MatchError(ErrUnclaimed))
		Expect(is.GetResourceVersion()).To(Equal(theirs.GetResourceVersion()))
	})

	It("of others stay theirs", func(ctx SpecContext) {
		r := newRecording()
		theirs, err := r.client.Create(ctx, autoscalerWith(3, "old"), metav1.CreateOptions{FieldManager: "somebody"})
		Expect(err).NotTo(HaveOccurred())
		is, err := send(ctx, r, change(theirs, false), autoscalerWith(5, ""))
		Expect(err).To(MatchError(ErrUnclaimed))
		Expect(is.GetResourceVersion()).To(Equal(theirs.GetResourceVersion()), "there is nothing to do")
	})
})

func unstructuredInt(u *unstructured.Unstructured, path ...string) int64 {
	GinkgoHelper()
	n, found, err := unstructured.NestedInt64(u.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	return n
}
