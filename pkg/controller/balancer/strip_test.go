// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	machinev1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

func podOf(owner, name string, labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels}}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}}
	}
	return p
}

func numbered(n int, value string) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprint("key", i)] = value
	}
	return labels
}

var _ = Describe("The cache of pods", func() {
	kept := func(strip func(any) (any, error), pod *corev1.Pod) *CachedPod {
		GinkgoHelper()
		item, err := strip(pod)
		Expect(err).NotTo(HaveOccurred())
		return item.(*CachedPod)
	}
	same := func(a, b *CachedPod) bool {
		return reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer()
	}

	DescribeTable("keeps labels up to a limit", func(labels map[string]string, keeps bool) {
		before := maps.Clone(labels)
		Expect(maps.Equal(kept(StripPods(), podOf("", "a", labels)).Labels, before)).To(Equal(keeps))
	},
		Entry("as many as a pod may have", numbered(64, ""), true),
		Entry("one more", numbered(65, ""), false),
		Entry("as large as they may be", map[string]string{"k": strings.Repeat("x", 4095)}, true),
		Entry("one byte more", map[string]string{"k": strings.Repeat("x", 4096)}, false),
	)

	It("has pods of one owner share their labels, and no others", func() {
		strip := StripPods()
		labels := func(v string) map[string]string { return map[string]string{"app": v} }
		a, b := kept(strip, podOf("web", "a", labels("1"))), kept(strip, podOf("web", "b", labels("1")))
		Expect(same(a, b)).To(BeTrue())
		changed := kept(strip, podOf("web", "a", labels("2")))
		Expect(changed.Labels).To(Equal(labels("2")))
		Expect(b.Labels).To(Equal(labels("1")), "what is cached never changes")
		Expect(same(kept(strip, podOf("web", "c", labels("2"))), changed)).To(BeTrue())
		lone := kept(strip, podOf("", "a", labels("1")))
		Expect(same(lone, kept(strip, podOf("", "b", labels("1"))))).To(BeFalse())
	})

	It("does not grow with the owners that there were", func() {
		strip, labels := StripPods(), map[string]string{"app": "web"}
		first := kept(strip, podOf("web", "a", labels))
		for i := range 2000 {
			kept(strip, podOf(fmt.Sprint("former-", i), "a", labels))
		}
		Expect(same(kept(strip, podOf("web", "b", map[string]string{"app": "web"})), first)).To(BeFalse(), "the first one is forgotten")
	})
})

var _ = Describe("The cache of workloads", func() {
	conditions := func(kind, status string) []any {
		return []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": kind, "status": status}}
	}
	object := func(change func(o *unstructured.Unstructured)) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment",
			"metadata": map[string]any{"namespace": ns, "name": "w", "resourceVersion": "7", "generation": int64(3), "creationTimestamp": "2026-01-02T03:04:05Z",
				"labels": map[string]any{"app": "w"}, "annotations": map[string]any{"large": strings.Repeat("x", 256<<10-1)}, "managedFields": []any{map[string]any{"manager": "x"}}},
			"spec": map[string]any{"replicas": int64(5), "selector": map[string]any{"matchLabels": map[string]any{"app": "w"}}, "template": map[string]any{"a": strings.Repeat("x", 1<<20)}},
			"status": map[string]any{"observedGeneration": int64(2), "replicas": int64(4), "readyReplicas": int64(3), "availableReplicas": int64(2),
				"currentStatus": map[string]any{"phase": "Running", "lastUpdateTime": "2026-01-02T03:05:05Z"}, "lastOperation": map[string]any{"errorCode": "ResourceExhausted", "description": strings.Repeat("x", 1<<16)}},
		}}
		if change != nil {
			change(o)
		}
		return o
	}
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(o.Object, value, path...)).To(Succeed())
		}
	}
	read := func(o *unstructured.Unstructured) []any {
		replica, ok := plan.MachineReplica(o)
		return []any{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName(), o.GetResourceVersion(), o.GetLabels(), o.GetDeletionTimestamp(), OwnCounts(o), PodSelector(o), Settling(o),
			Capped(schema.GroupVersionResource{Group: machinev1alpha1.GroupName}, o), IsParallel(statefulSets, o), Kept(o.GetAnnotations()), replica, ok}
	}

	DescribeTable("reads as the objects themselves do, and takes little", func(change func(*unstructured.Unstructured)) {
		whole := object(change)
		item, err := StripObject(object(change))
		Expect(err).NotTo(HaveOccurred())
		slim := item.(*unstructured.Unstructured)
		Expect(read(slim)).To(Equal(read(whole)))
		text, err := json.Marshal(slim)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(text)).To(BeNumerically("<", 2<<10))
	},
		Entry(nil, nil),
		Entry("frozen", set(conditions("Frozen", "True"), "status", "conditions")),
		Entry("not frozen any more", set(conditions("Frozen", "False"), "status", "conditions")),
		Entry("that deletes pods by their ordinals alone", set("Parallel", "spec", "podManagementPolicy")),
		Entry("of an autoscaler", set("1:3", "metadata", "annotations", machinev1alpha1.BoundsAnnotation)),
		Entry("of the balance controller", set("ScaleUp", "metadata", "annotations", machinev1alpha1.BalanceAnnotation)),
		Entry("that the balance controller keeps even", set("5", "metadata", "annotations", machinev1alpha1.AppliedReplicasAnnotation)),
		Entry("being deleted", set("2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")),
		Entry("terminating", set("Terminating", "status", "currentStatus", "phase")),
		Entry("new", func(o *unstructured.Unstructured) { delete(o.Object, "status") }),
		Entry("not what it should be", func(o *unstructured.Unstructured) { o.Object["status"] = "none" }),
	)

	It("keeps no selector that is too large", func() {
		values := make([]any, 1000)
		for i := range values {
			values[i] = fmt.Sprint("value-", i)
		}
		item, err := StripObject(object(set([]any{map[string]any{"key": "app", "operator": "NotIn", "values": values}}, "spec", "selector", "matchExpressions")))
		Expect(err).NotTo(HaveOccurred())
		Expect(PodSelector(item.(*unstructured.Unstructured))).To(BeEmpty())
	})

	It("keeps the selector of a ReplicationController, which is a map", func() {
		item, err := StripObject(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ReplicationController", "metadata": map[string]any{"name": "old"},
			"spec": map[string]any{"replicas": int64(3), "selector": map[string]any{"app": "shop", "run": "old"}}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(PodSelector(item.(*unstructured.Unstructured))).To(Equal("app=shop,run=old"))
		unstructured.RemoveNestedField(item.(*unstructured.Unstructured).Object, "spec", "selector")
		Expect(PodSelector(item.(*unstructured.Unstructured))).To(BeEmpty())
	})

	It("keeps of an autoscaler what it scales, and by which utilization", func() {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"large": strings.Repeat("x", 256<<10-1)}}}
		hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "w"}
		for range 1000 {
			hpa.Spec.Metrics = append(hpa.Spec.Metrics, utilization(corev1.ResourceMemory))
		}
		item, err := StripHPA(hpa)
		Expect(err).NotTo(HaveOccurred())
		slim := item.(*autoscalingv2.HorizontalPodAutoscaler)
		Expect(slim.Spec.ScaleTargetRef).To(Equal(hpa.Spec.ScaleTargetRef))
		Expect(slim.Spec.Metrics).To(HaveLen(1))
		Expect(slim.Spec.Metrics[0].Resource.Name).To(Equal(corev1.ResourceMemory))
		Expect(slim.Size()).To(BeNumerically("<", 256))

		hpa.Spec.ScaleTargetRef.Name = strings.Repeat("x", 1<<20)
		item, err = StripHPA(hpa)
		Expect(err).NotTo(HaveOccurred())
		Expect(item.(*autoscalingv2.HorizontalPodAutoscaler).Size()).To(BeNumerically("<", 256))
	})
})

var _ = It("keeps of each object only what is read", func() {
	play(func(c *cluster) {
		c.deploy("a", 2)
		c.balance("shop", 2, builders.Shares(1), "a")
		c.autoscale("shop", "Balancer", "shop", utilization(corev1.ResourceCPU))
		c.change("shop", func(b *v1alpha1.Balancer) { b.Annotations = map[string]string{"large": strings.Repeat("x", 200<<10)} })
		var running *Controller
		c.Start("balancer", watched(Options{}, func(it *Controller) { running = it }))
		c.settle()
		kinds := map[string]int{}
		for _, item := range running.Cached() {
			kinds[fmt.Sprintf("%T", item)]++
			switch o := item.(type) {
			case *v1alpha1.Balancer:
				Expect(o.Annotations).To(BeEmpty())
			case *autoscalingv2.HorizontalPodAutoscaler:
				Expect(o.UID).To(BeEmpty())
			case *unstructured.Unstructured:
				Expect(o.GetUID()).To(BeEmpty())
			}
		}
		Expect(kinds).To(Equal(map[string]int{"*v1alpha1.Balancer": 1, "*v2.HorizontalPodAutoscaler": 1, "*unstructured.Unstructured": 1, "*balancer.cachedPod": 2}))
	})
})

// BenchmarkMemory prints how many bytes a pod of a large workload takes in the cache.
func BenchmarkMemory(b *testing.B) {
	strip := StripPods()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, Indexers)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range b.N {
		// What is decoded from an answer shares nothing.
		text, err := podOf("web", fmt.Sprint("web-", i), map[string]string{"app": "web", "pod-template-hash": "6d4b75cb6d"}).Marshal()
		if err != nil {
			b.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(text); err != nil {
			b.Fatal(err)
		}
		item, err := strip(pod)
		if err != nil {
			b.Fatal(err)
		}
		if err := store.Add(item); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "bytes/pod")
	runtime.KeepAlive(store)
}
