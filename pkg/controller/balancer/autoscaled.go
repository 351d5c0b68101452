// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// autoscaler returns the autoscaler of a workload: the first by name, nil if there is none.
func (c *Controller) autoscaler(target string) *autoscalingv2.HorizontalPodAutoscaler {
	items, _ := c.autoscalers.ByIndex(byTarget, target)
	var first *autoscalingv2.HorizontalPodAutoscaler
	for _, item := range items {
		if hpa, ok := item.(*autoscalingv2.HorizontalPodAutoscaler); ok && (first == nil || hpa.Name < first.Name) {
			first = hpa
		}
	}
	return first
}

// autoscaled describes the autoscaler of a Balancer; the zero value if there is none.
func (c *Controller) autoscaled(b *v1alpha1.Balancer, own labels.Selector) plan.Autoscaler {
	hpa := c.autoscaler(targetKey(b.Namespace, v1alpha1.SchemeGroupVersion.String(), "Balancer", b.Name))
	if hpa == nil {
		return plan.Autoscaler{}
	}
	a := plan.Autoscaler{Name: hpa.Name}
	a.CPU, a.Memory = usesUtilization(hpa, corev1.ResourceCPU), usesUtilization(hpa, corev1.ResourceMemory)
	pods := selected[*cachedPod](c.pods, b.Namespace, own)
	items, _ := c.autoscalers.ByIndex(cache.NamespaceIndex, b.Namespace)
	for _, item := range items {
		other, ok := item.(*autoscalingv2.HorizontalPodAutoscaler)
		if !ok || other.Name == hpa.Name || a.Rival != "" && a.Rival < other.Name {
			continue
		}
		if counts := c.countedBy(other); counts != nil && matchesPod(counts, pods) {
			a.Rival = other.Name
		}
	}
	return a
}

// usesUtilization reports whether an autoscaler scales by how much of what pods request of a
// resource they use.
func usesUtilization(hpa *autoscalingv2.HorizontalPodAutoscaler, name corev1.ResourceName) bool {
	return slices.ContainsFunc(hpa.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Resource != nil && m.Resource.Target.Type == autoscalingv2.UtilizationMetricType && m.Resource.Name == name
	})
}

// requests reports whether a pod requests a resource in the way that an autoscaler requires: as a
// whole, or with every container that runs permanently.
func requests(pod *corev1.Pod, name corev1.ResourceName) bool {
	if whole := pod.Spec.Resources; whole != nil {
		if _, ok := whole.Requests[name]; ok {
			return true
		}
	}
	lacks := func(c corev1.Container) bool { _, ok := c.Resources.Requests[name]; return !ok }
	sidecar := func(c corev1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	return !slices.ContainsFunc(pod.Spec.Containers, lacks) &&
		!slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return sidecar(c) && lacks(c) })
}

func matchesPod(selector labels.Selector, pods []*cachedPod) bool {
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

// countedBy returns a selector of the pods that an autoscaler counts; nil if that is unknown. It
// starts no watch.
func (c *Controller) countedBy(hpa *autoscalingv2.HorizontalPodAutoscaler) labels.Selector {
	ref := hpa.Spec.ScaleTargetRef
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	key := hpa.Namespace + "/" + ref.Name
	if gvk.GroupKind() == v1alpha1.SchemeGroupVersion.WithKind("Balancer").GroupKind() {
		item, _, _ := c.balancers.GetByKey(key)
		if b, ok := item.(*v1alpha1.Balancer); ok {
			return notAll(metav1.LabelSelectorAsSelector(&b.Spec.Selector))
		}
		return nil
	}
	object, ok := c.watches.cached(gvk, key)
	if !ok {
		return nil
	}
	return notAll(structuredSelector(object))
}

// notAll returns a selector that is valid and does not match everything, otherwise nil.
func notAll(selector labels.Selector, err error) labels.Selector {
	if err != nil || selector.Empty() {
		return nil
	}
	return selector
}

// cached returns an object from the cache of its kind, if there is such a cache.
func (w *watches) cached(gvk schema.GroupVersionKind, key string) (*unstructured.Unstructured, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource, k := range w.caches {
		if resource.GroupVersion() != gvk.GroupVersion() {
			continue
		}
		item, _, _ := k.informer.GetIndexer().GetByKey(key)
		if object, ok := item.(*unstructured.Unstructured); ok && object.GetKind() == gvk.Kind {
			return object, true
		}
	}
	return nil, false
}

// autoscalerChanged queues all Balancers of an autoscaler's namespace.
func (c *Controller) autoscalerChanged(items ...any) {
	if onlyReports(items...) {
		return
	}
	for _, item := range items {
		hpa, ok := item.(*autoscalingv2.HorizontalPodAutoscaler)
		if !ok {
			continue
		}
		keys, _ := c.balancers.IndexKeys(cache.NamespaceIndex, hpa.Namespace)
		for _, key := range keys {
			c.loop.Add(key)
		}
	}
}

// onlyReports reports whether, between two versions of an autoscaler, only its status has changed,
// as it does every few seconds.
func onlyReports(items ...any) bool {
	if len(items) != 2 {
		return false
	}
	was, known := items[0].(*autoscalingv2.HorizontalPodAutoscaler)
	is, ok := items[1].(*autoscalingv2.HorizontalPodAutoscaler)
	return known && ok && equality.Semantic.DeepEqual(was.Spec, is.Spec)
}
