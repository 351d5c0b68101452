// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// shownAt is when a preview is shown its objects.
var shownAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// deployments and statefulSets are the resources of the targets here.
var (
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

// pair is a Balancer over Deployments a and b. The pods of a run.
func pair(replicas int32) Objects {
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "pair"}}
	b.Spec = v1alpha1.BalancerSpec{Replicas: ptr.To(replicas), Policy: builders.Even(), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "pair"}}}
	o := Objects{Balancers: []*v1alpha1.Balancer{b}, Workloads: map[schema.GroupVersionResource][]*unstructured.Unstructured{deployments: {}}}
	for _, name := range []string{"a", "b"} {
		b.Spec.Targets = append(b.Spec.Targets, v1alpha1.BalancerTarget{Name: name, ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}})
		o.Workloads[deployments] = append(o.Workloads[deployments], &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "n", "name": name, "resourceVersion": "7"},
			"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"in": name}}},
		}})
		started := metav1.NewTime(shownAt.Add(-1))
		o.Pods = append(o.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{"in": name, "app": "pair"}}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &started, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	}
	return o
}

func preview(o Objects) *Preview {
	GinkgoHelper()
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	discovery.Resources = []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "deployments/scale", Kind: "Scale", Namespaced: true},
		{Name: "statefulsets", Kind: "StatefulSet", Namespaced: true}, {Name: "statefulsets/scale", Kind: "Scale", Namespaced: true}}}}
	p, err := NewPreview(Clients{Discovery: discovery})
	Expect(err).NotTo(HaveOccurred())
	Expect(p.SetObjects(o, shownAt)).To(Succeed())
	return p
}

var _ = Describe("A preview", func() {
	It("plans from the objects that it is shown, returns what it would write, and makes no request", func(ctx context.Context) {
		o := pair(4)
		p := preview(o)
		Expect(p.Resources(o.Balancers[0])).To(Equal([]schema.GroupVersionResource{deployments, deployments}))
		v, plan, ok, err := p.Plan(ctx, "n", "pair")
		Expect(err).NotTo(HaveOccurred())
		Expect(ok).To(BeTrue())
		b, asks := v.After(plan)
		Expect(asks).NotTo(BeEmpty())
		Expect(asks[0]).To(And(HaveField("Target", "a"), HaveField("From", BeEquivalentTo(1)), HaveField("To", BeNumerically(">", 1)), HaveField("Object.Name", "a")))
		Expect(b.Status.Targets[0].Replicas).To(BeEquivalentTo(asks[0].To))
		Expect(o.Balancers[0].Status.Targets).To(BeEmpty(), "what was shown stays as it was")
		_, _, ok, err = p.Plan(ctx, "n", "other")
		Expect(ok, err).To(BeFalse())
	})

	It("asks for nothing where the Balancer is paused, or is none", func(ctx context.Context) {
		for _, change := range []func(*v1alpha1.BalancerSpec){
			func(s *v1alpha1.BalancerSpec) { s.Paused = true },
			func(s *v1alpha1.BalancerSpec) { s.Policy = v1alpha1.BalancerPolicy{} },
		} {
			o := pair(4)
			change(&o.Balancers[0].Spec)
			v, plan, _, err := preview(o).Plan(ctx, "n", "pair")
			Expect(err).NotTo(HaveOccurred())
			_, asks := v.After(plan)
			Expect(asks).To(BeEmpty())
		}
	})

	DescribeTable("expects of the pods of a StatefulSet that are not ready to be deleted first, unless it deletes pods by their ordinals alone",
		func(ctx context.Context, policy string, want int) {
			o := pair(4)
			o.Balancers[0].Spec.Targets[0].State = v1alpha1.Drained
			o.Balancers[0].Spec.Targets[0].ScaleTargetRef.Kind = "StatefulSet"
			set := o.Workloads[deployments][0].DeepCopy()
			set.SetKind("StatefulSet")
			Expect(unstructured.SetNestedField(set.Object, policy, "spec", "podManagementPolicy")).To(Succeed())
			Expect(unstructured.SetNestedField(set.Object, int64(2), "spec", "replicas")).To(Succeed())
			o.Workloads[statefulSets] = []*unstructured.Unstructured{set}
			p := preview(o)
			_, plan, _, err := p.Plan(ctx, "n", "pair")
			Expect(err).NotTo(HaveOccurred())
			Expect(plan.Shares[0].Next).To(BeEquivalentTo(want))
		},
		Entry("one of two that is not ready", "OrderedReady", 1),
		Entry("none of two, of which one is ready", "Parallel", 2),
	)

	It("leaves a target alone whose kind could not be listed, or that does not exist", func(ctx context.Context) {
		o := pair(4)
		delete(o.Workloads, deployments)
		_, plan, _, err := preview(o).Plan(ctx, "n", "pair")
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Shares[0].Hold.Reason).To(Equal("OutOfReach"))
		o = pair(4)
		o.Workloads[deployments] = o.Workloads[deployments][1:]
		_, plan, _, err = preview(o).Plan(ctx, "n", "pair")
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Shares[0].Hold.Reason).To(Equal("NotFound"))
	})
})
