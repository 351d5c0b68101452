// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

var _ = Describe("What an object brings along", func() {
	DescribeTable("is created in each cluster, follows its template, keeps its replicas, and is deleted with the object",
		func(ctx context.Context, kind string) {
			s := newShop(ctx, "brought-"+strings.ToLower(kind), 3, 30, atLeastOne, func(s *spec) {
				s.ScaleTargetRef.Kind = kind
				s.Placement = brought(kind, s.ScaleTargetRef.Name, 1)
			})
			s.load(2, 1, 3)
			Eventually(s.brought(ctx, kind)).Should(Equal("2 of v1/1 of v1/3 of v1"))
			s.change(ctx, func(s *spec) { s.Placement = brought(kind, s.ScaleTargetRef.Name, 2) })
			Eventually(s.brought(ctx, kind)).Should(Equal("2 of v2/1 of v2/3 of v2"))
			s.guard.held()
			s.remove(ctx)
			Eventually(s.brought(ctx, kind)).Should(Equal("-/-/-"))
		},
		Entry("as a Deployment", "Deployment"),
		Entry("as a StatefulSet", "StatefulSet"),
	)
})

// without deselects a member.
func without(name string) func(*spec) {
	return func(s *spec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{name}}}}
	}
}

var _ = Describe("A workload in a cluster that leaves", func() {
	DescribeTable("is scaled to 0 if that is asked for, and scales again when the cluster is used again",
		func(ctx context.Context, kind string) {
			s := newShop(ctx, "zeroed-"+strings.ToLower(kind), 3, 30, atLeastOne, func(s *spec) {
				s.ScaleTargetRef.Kind, s.LeavePolicy = kind, v1alpha1.LeaveScaleToZero
				s.Placement = brought(kind, s.ScaleTargetRef.Name, 1)
			})
			s.load(2, 4, 3)
			Eventually(s.brought(ctx, kind)).Should(Equal("2 of v1/4 of v1/3 of v1"))
			s.change(ctx, without("c2"))
			Eventually(s.brought(ctx, kind)).Should(Equal("2 of v1/0 of v1/3 of v1"))
			s.change(ctx, func(s *spec) { s.ClusterSelector = nil })
			Eventually(s.brought(ctx, kind)).Should(Equal("2 of v1/4 of v1/3 of v1"))
			s.guard.held()
		},
		Entry("as a Deployment", "Deployment"),
		Entry("as a StatefulSet", "StatefulSet"),
	)
})

var _ = Describe("A workload that is deleted after it ran", func() {
	It("gives its share to a cluster that needs it, and gets one again when it is back", Label("short"), func(ctx context.Context) {
		s := newShop(ctx, "vanished", 2, 20, atLeastOne, func(s *spec) { s.Rebalance.StartTimeoutSeconds = ptr.To[int32](5) })
		s.load(9, 2, 2)
		Eventually(s.replicas(ctx)).Should(Equal("9/2/2"))
		Expect(members[0].core.AppsV1().Deployments(namespace).Delete(ctx, s.name, metav1.DeleteOptions{})).To(Succeed())
		s.load(9, 13, 2)
		Eventually(s.replicas(ctx)).Should(Equal("-/13/2"), "with the 9 that ran held, 13 would not fit into 20")
		Expect(s.state(ctx, "c1")()).To(Equal("Used NoWorkload"))
		_, err := members[0].core.AppsV1().Deployments(namespace).Create(ctx, deployment(s.name), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		s.load(9, 2, 2)
		Eventually(s.replicas(ctx)).Should(Equal("9/2/2"))
		s.guard.held()
	})
})

var _ = Describe("An autoscaler that already exists", func() {
	It("is taken over from a hub that was stopped right after creating it, with everything that this hub had written", func(ctx context.Context) {
		s := newShop(ctx, "halfway", 3, 30, atLeastOne, func(s *spec) { s.Adopt, s.Paused, s.Behavior = true, true, nil })
		left := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
		left.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: s.name}
		left.Spec.MaxReplicas = 5
		left.Spec.Metrics = make([]autoscalingv2.MetricSpec, 1) // without them it would not scale, and be left out of the division
		Expect(json.Unmarshal(s.get(ctx).Spec.Metrics[0].Raw, &left.Spec.Metrics[0])).To(Succeed())
		left.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](77)}}
		_, err := members[0].core.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(ctx, left, metav1.CreateOptions{FieldManager: "evenkeel-federatedhpa"})
		Expect(err).NotTo(HaveOccurred())
		s.change(ctx, func(s *spec) { s.Paused = false })
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		Eventually(s.written(ctx, func(h *autoscalingv2.HorizontalPodAutoscaler) string {
			return fmt.Sprint(h.Spec.Behavior != nil)
		})).Should(Equal("false/false/false"), "what the object does not ask for must not stay")
		s.guard.held()
	})
})

// brought is a placement of a workload whose image has that version.
func brought(kind, name string, version int) *v1alpha1.Placement {
	return &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{
		"apiVersion":"apps/v1","kind":%[1]q,"metadata":{"name":%[2]q},"spec":{"selector":{"matchLabels":{"app":%[2]q}},
		"template":{"metadata":{"labels":{"app":%[2]q}},"spec":{"containers":[{"name":"work","image":"registry.example/work:v%[3]d"}]}}}}`, kind, name, version)}}
}

// brought are the replicas wanted of the members' workloads, and their image's version.
func (s *shop) brought(ctx context.Context, kind string) func() string {
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: strings.ToLower(kind) + "s"}
	return func() string {
		var words []string
		for _, m := range members {
			u, err := m.dynamic.Resource(resource).Namespace(namespace).Get(ctx, s.name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				words = append(words, "-")
			case err != nil:
				words = append(words, err.Error())
			default:
				words = append(words, said(u))
			}
		}
		return strings.Join(words, "/")
	}
}

func said(u *unstructured.Unstructured) string {
	GinkgoHelper()
	replicas, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	Expect(err).NotTo(HaveOccurred())
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	Expect(containers).To(HaveLen(1))
	_, version, _ := strings.Cut(containers[0].(map[string]any)["image"].(string), ":")
	return fmt.Sprintf("%d of %s", replicas, version)
}
