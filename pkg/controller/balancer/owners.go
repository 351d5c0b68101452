// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
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

// byTarget indexes Balancers and autoscalers by the workloads that they scale.
const byTarget = "target"

func targetKey(namespace, apiVersion, kind, name string) string {
	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind().String() + "/" + namespace + "/" + name
}

func targetKeys(b *v1alpha1.Balancer) []string {
	keys := make([]string, 0, len(b.Spec.Targets))
	for _, t := range b.Spec.Targets {
		keys = append(keys, targetKey(b.Namespace, t.ScaleTargetRef.APIVersion, t.ScaleTargetRef.Kind, t.ScaleTargetRef.Name))
	}
	return keys
}

func indexByTarget(item any) ([]string, error) {
	switch object := item.(type) {
	case *v1alpha1.Balancer:
		return targetKeys(object), nil
	case *autoscalingv2.HorizontalPodAutoscaler:
		return []string{autoscaledKey(object)}, nil
	}
	return nil, nil
}

func autoscaledKey(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	ref := hpa.Spec.ScaleTargetRef
	return targetKey(hpa.Namespace, ref.APIVersion, ref.Kind, ref.Name)
}

// olderRival returns the oldest Balancer that is older than this one, has a target in common with
// it, is valid, and has no such rival itself: a Balancer that writes nothing blocks no other.
func (c *Controller) olderRival(b *v1alpha1.Balancer) (rival, contested string) {
	return c.rivalOf(b, map[string]bool{})
}

// rivalOf remembers by name which Balancers are invalid or have a rival. It continues with older and
// older ones, so it ends.
func (c *Controller) rivalOf(b *v1alpha1.Balancer, idle map[string]bool) (rival, contested string) {
	oldest := b
	for i, key := range targetKeys(b) {
		items, _ := c.balancers.ByIndex(byTarget, key)
		for _, item := range items {
			other, ok := item.(*v1alpha1.Balancer)
			if !ok || other.DeletionTimestamp != nil || !isOlder(other, oldest) {
				continue
			}
			if _, known := idle[other.Name]; !known {
				its, _ := c.rivalOf(other, idle)
				idle[other.Name] = its != "" || !plan.IsValid(other.Spec)
			}
			if !idle[other.Name] {
				oldest, rival, contested = other, other.Name, b.Spec.Targets[i].Name
			}
		}
	}
	return rival, contested
}

func isOlder(a, b *v1alpha1.Balancer) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// otherWriter returns which other client writes the replicas of a target.
func (c *Controller) otherWriter(t plan.Target, object *unstructured.Unstructured) plan.Hold {
	if t.Object.Resource.Group == machineGroup {
		if hold := heldByAnnotation(object.GetAnnotations()); hold != (plan.Hold{}) {
			return hold
		}
	}
	ref := t.Spec.ScaleTargetRef
	if hpa := c.autoscaler(targetKey(t.Object.Namespace, ref.APIVersion, ref.Kind, ref.Name)); hpa != nil {
		return polling("Autoscaled", fmt.Sprintf("HorizontalPodAutoscaler %s also scales it: let the autoscaler scale the Balancer instead", hpa.Name))
	}
	return plan.Hold{}
}

// Annotations of MachineDeployments, as in pkg/apis/machine. That package is not imported, because it contains
// machine-controller-manager's types.
const (
	boundsAnnotation          = "evenkeel.machine.sapcloud.io/bounds"
	balanceAnnotation         = "evenkeel.machine.sapcloud.io/balance"
	appliedReplicasAnnotation = "evenkeel.machine.sapcloud.io/applied-replicas"
)

// heldByAnnotation returns the annotation by which another client writes the replicas of a
// MachineDeployment. If the balance controller writes them because of the mode of its flag, this
// shows in the replicas that it applies.
func heldByAnnotation(annotations map[string]string) plan.Hold {
	if annotations[boundsAnnotation] != "" {
		return polling("HasBounds", fmt.Sprintf("an autoscaler scales it within its annotation %s: remove the annotation, or the target", boundsAnnotation))
	}
	mode := annotations[balanceAnnotation]
	if _, applied := annotations[appliedReplicasAnnotation]; applied || mode == "ScaleUp" || mode == "Continuous" {
		return polling("KeptEven", fmt.Sprintf("the balance controller keeps its replicas even with other zones: set its annotation %s to Off, or remove the target", balanceAnnotation))
	}
	return plan.Hold{}
}

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
