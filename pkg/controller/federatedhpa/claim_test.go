// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/test/sim"
)

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
		return federatedhpa.SendOrder(ctx, r.client, o, "shop", wanted)
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
		Expect(err).To(MatchError(federatedhpa.ErrUnclaimed))
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
		Expect(err).To(MatchError(federatedhpa.ErrUnclaimed))
		Expect(is.GetResourceVersion()).To(Equal(theirs.GetResourceVersion()))
	})

	It("of others stay theirs", func(ctx SpecContext) {
		r := newRecording()
		theirs, err := r.client.Create(ctx, autoscalerWith(3, "old"), metav1.CreateOptions{FieldManager: "somebody"})
		Expect(err).NotTo(HaveOccurred())
		is, err := send(ctx, r, change(theirs, false), autoscalerWith(5, ""))
		Expect(err).To(MatchError(federatedhpa.ErrUnclaimed))
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
