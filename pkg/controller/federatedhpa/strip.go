// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// maxSpec limits the metrics, behavior, template and selector of an object, in bytes.
	maxSpec = 64 << 10
	// oversized is the annotation that the cache adds to an object beyond this limit. Only its own
	// object is affected.
	oversized = v1alpha1.GroupName + "/oversized"
)

// stripObject drops what is not read here, and the whole spec if it exceeds its limit. Calling it
// again with its result changes nothing.
func stripObject(item any) (any, error) {
	o, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler)
	if !ok {
		return item, nil
	}
	o.Labels, o.Annotations, o.ManagedFields = nil, onlyKey(o.Annotations, oversized), nil
	if sizeOf(o.Spec) > maxSpec {
		o.Annotations = map[string]string{oversized: "true"}
		o.Spec.Metrics, o.Spec.Behavior, o.Spec.ClusterSelector = nil, nil, nil
		if o.Spec.Placement != nil {
			o.Spec.Placement.Template = nil
		}
	}
	return o, nil
}

// sizeOf returns the size in bytes of the parts of a spec that the CRD does not limit.
func sizeOf(s v1alpha1.FederatedHorizontalPodAutoscalerSpec) (size int) {
	for _, m := range s.Metrics {
		size += len(m.Raw)
	}
	if s.Behavior != nil {
		size += len(s.Behavior.Raw)
	}
	if s.Placement != nil && s.Placement.Template != nil {
		size += len(s.Placement.Template.Raw)
	}
	if s.ClusterSelector != nil {
		size += s.ClusterSelector.Size()
	}
	return size
}

// stripWorkload keeps what is read here.
func stripWorkload(item any) (any, error) {
	u, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item, nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	kept.SetNamespace(u.GetNamespace())
	kept.SetName(u.GetName())
	kept.SetUID(u.GetUID())
	kept.SetResourceVersion(u.GetResourceVersion())
	kept.SetDeletionTimestamp(u.GetDeletionTimestamp())
	kept.SetLabels(onlyKey(u.GetLabels(), ownerLabel))
	kept.SetAnnotations(onlyKey(u.GetAnnotations(), templateAnnotation))
	if ready, found, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); found {
		_ = unstructured.SetNestedField(kept.Object, ready, "status", "readyReplicas")
	}
	if wanted, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		_ = unstructured.SetNestedField(kept.Object, wanted, "spec", "replicas")
	}
	for _, f := range u.GetManagedFields() {
		if scaledByHub(f) {
			kept.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: f.Manager}})
		}
	}
	return kept, nil
}

// scaledByHub reports whether these fields show that the hub was the last one to scale a workload.
func scaledByHub(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == leaveManager
}

func onlyKey(all map[string]string, key string) map[string]string {
	if value, ok := all[key]; ok {
		return map[string]string{key: value}
	}
	return nil
}

func (m *member) workloadChanged(items ...any) {
	for _, item := range items {
		if u, ok := unstructuredOf(item); ok {
			m.changed("", workloadKey(u.GetNamespace(), u.GetAPIVersion(), u.GetKind(), u.GetName()))
		}
	}
}

// autoscalers is the cache of all autoscalers of a cluster, by the workloads that they scale.
func autoscalers(client dynamic.Interface, namespace string, resumed func()) cache.SharedIndexInformer {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, hpaResource, namespace, 0, cache.Indexers{byTarget: indexHPA}, func(o *metav1.ListOptions) {
		if o.AllowWatchBookmarks && o.SendInitialEvents == nil { // a watch that begins where a list or another watch ended
			resumed()
		}
		written.ListStored(o)
	}).Informer()
	_ = informer.SetTransform(stripAutoscaler) // fails only for a running informer
	return informer
}

// stripAutoscaler drops what is not read here. Of autoscalers that are not ours, it keeps only the
// bounds and what they scale; of managed fields, only what is yet to be claimed.
func stripAutoscaler(item any) (any, error) {
	u, ok := unstructuredOf(item)
	if !ok {
		return item, nil
	}
	u.SetLabels(onlyKey(u.GetLabels(), ownerLabel))
	u.SetAnnotations(onlyKey(u.GetAnnotations(), templateAnnotation))
	if len(u.GetLabels()) == 0 {
		for _, field := range [][]string{{"spec", "metrics"}, {"spec", "behavior"}, {"status", "currentMetrics"}} {
			unstructured.RemoveNestedField(u.Object, field...)
		}
	}
	var kept []metav1.ManagedFieldsEntry
	for _, f := range u.GetManagedFields() {
		if unclaimed(f) {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: f.Manager, Operation: f.Operation, FieldsV1: metav1.NewFieldsV1("{}")})
		}
	}
	u.SetManagedFields(kept)
	return u, nil
}

// maxCached limits what is cached of one cluster, in bytes as weightOf counts them.
const maxCached = 32 << 20

var tooMuchCached = plan.Hold{Reason: "TooManyObjects", Message: "the cluster has more autoscalers and workloads than the hub reads from one cluster: remove objects there, and then replace its kubeconfig"}

// weight counts how much is cached of a cluster.
type weight struct {
	limit int
	full  func() // called once, when the limit is exceeded

	mu   sync.Mutex
	sum  int
	told bool
}

// part is what one cache contributes.
type part struct {
	of  *weight
	sum int
}

func (p *part) addBytes(n int) {
	w := p.of
	w.mu.Lock()
	p.sum += n
	w.sum += n
	tell := w.sum > w.limit && !w.told
	w.told = w.told || tell
	w.mu.Unlock()
	if tell {
		w.full()
	}
}

// release removes the weight of a cache that has ended.
func (p *part) release() { p.addBytes(-p.sum) }

// listen counts the objects of a cache, and passes on every object that is added, changed or
// deleted; of a changed one, both versions.
func (p *part) listen(tell func(items ...any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(item any) { p.addBytes(weightOf(item)); tell(item) },
		UpdateFunc: func(was, is any) { p.addBytes(weightOf(is) - weightOf(was)); tell(was, is) },
		DeleteFunc: func(item any) {
			item = handlers.LastState(item)
			p.addBytes(-weightOf(item))
			tell(item)
		},
	}
}

// weightOf estimates the size of an object in bytes.
func weightOf(item any) int {
	u, ok := unstructuredOf(item)
	if !ok {
		return 0
	}
	return weightOfValue(u.Object)
}

func weightOfValue(value any) int {
	const each = 32
	n := each
	switch v := value.(type) {
	case string:
		n += len(v)
	case map[string]any:
		for key, inner := range v {
			n += len(key) + weightOfValue(inner)
		}
	case []any:
		for _, inner := range v {
			n += weightOfValue(inner)
		}
	}
	return n
}
