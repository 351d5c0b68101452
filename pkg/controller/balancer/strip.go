// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"maps"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// Any user of a namespace decides how many pods, workloads and autoscalers there are, and how large
// they are. The caches keep only what this package reads, up to these limits.
const (
	// maxLabels and maxLabelBytes limit the labels of one object. An object with more is kept
	// without labels: no selector finds it.
	maxLabels, maxLabelBytes = 64, 4 << 10
	// maxSelectorBytes limits the selector of a workload. A workload with a larger selector is
	// cached without one, and its status provides the number of replicas.
	maxSelectorBytes = 8 << 10
	// maxRefBytes limits the length of an autoscaler's scale target. No object has a longer name.
	maxRefBytes = 1 << 10
	// maxSharers is how many owners of pods are remembered at most. Where there are more, all are
	// forgotten.
	maxSharers = 2_000
)

// cachedPod is what the cache keeps of a pod.
type cachedPod struct {
	metav1.ObjectMeta
	replica plan.Replica
	// node is the Node that it is bound to.
	node string
	// counts is false for a pod that is no replica: it has finished, or is being deleted.
	counts bool
	// requestsCPU and requestsMemory report what the pod requests as a HorizontalPodAutoscaler
	// needs it.
	requestsCPU, requestsMemory bool
}

// podStripper is the transform of the informer of pods. Pods of one owner share their labels.
type podStripper struct {
	mu     sync.Mutex
	shared map[types.UID]map[string]string
}

func (s *podStripper) stripObject(item any) (any, error) {
	if pod, ok := item.(*corev1.Pod); ok {
		return s.stripPod(pod), nil
	}
	return item, nil
}

func (s *podStripper) stripPod(pod *corev1.Pod) *cachedPod {
	kept := &cachedPod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion, Labels: s.shareLabels(pod),
	}}
	kept.replica, kept.counts = plan.PodReplica(pod)
	kept.node = pod.Spec.NodeName
	kept.requestsCPU, kept.requestsMemory = requests(pod, corev1.ResourceCPU), requests(pod, corev1.ResourceMemory)
	return kept
}

// shareLabels returns the labels of a pod, in one copy for all pods of an owner that have the same.
// The copy must not be changed.
func (s *podStripper) shareLabels(pod *corev1.Pod) map[string]string {
	own := boundedLabels(pod.Labels)
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || own == nil {
		return own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shared[owner.UID]; maps.Equal(known, own) {
		return known
	}
	if s.shared == nil || len(s.shared) >= maxSharers {
		s.shared = map[types.UID]map[string]string{}
	}
	s.shared[owner.UID] = own
	return own
}

// boundedLabels are these labels, or none if they are too many or too large.
func boundedLabels(labels map[string]string) map[string]string {
	bytes := 0
	for name, value := range labels {
		bytes += len(name) + len(value)
	}
	if len(labels) > maxLabels || bytes > maxLabelBytes {
		return nil
	}
	return labels
}

// stripBalancer drops what the schema of Balancers does not limit. Only the status is ever written
// back.
func stripBalancer(item any) (any, error) {
	if b, ok := item.(*v1alpha1.Balancer); ok {
		slim := *b
		slim.ManagedFields, slim.Annotations, slim.Labels = nil, nil, nil
		return &slim, nil
	}
	return item, nil
}

// stripAutoscaler keeps what an autoscaler scales, and whether it does so by the utilization of CPU
// and of memory.
func stripAutoscaler(item any) (any, error) {
	hpa, ok := item.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return item, nil
	}
	slim := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{
		Namespace: hpa.Namespace, Name: hpa.Name, ResourceVersion: hpa.ResourceVersion,
	}}
	if hpa.Spec.ScaleTargetRef.Size() <= maxRefBytes {
		slim.Spec.ScaleTargetRef = hpa.Spec.ScaleTargetRef
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if usesUtilization(hpa, name) {
			slim.Spec.Metrics = append(slim.Spec.Metrics, autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: name, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType}}})
		}
	}
	return slim, nil
}

// readFields are the fields that this package reads of workloads and Machines, besides metadata and
// conditions.
var readFields = [][]string{
	{"apiVersion"}, {"kind"}, {"spec", "replicas"}, {"spec", "selector"}, {"spec", "podManagementPolicy"},
	{"status", "observedGeneration"}, {"status", "replicas"}, {"status", "readyReplicas"}, {"status", "availableReplicas"},
	{"status", "currentStatus", "phase"}, {"status", "currentStatus", "lastUpdateTime"}, {"status", "lastOperation", "errorCode"},
}

// readAnnotations are the annotations that this package reads of MachineDeployments.
var readAnnotations = []string{boundsAnnotation, balanceAnnotation, appliedReplicasAnnotation}

// stripObject keeps what is read of a workload or a Machine.
func stripObject(item any) (any, error) {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item, nil
	}
	slim := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range readFields {
		value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err == nil && found && estimateSize(value) <= maxSelectorBytes {
			_ = unstructured.SetNestedField(slim.Object, value, path...) // fails only below a value that is not a map, and we made these
		}
	}
	stripMetadata(object, slim)
	if frozen(object) {
		_ = unstructured.SetNestedSlice(slim.Object, []any{map[string]any{"type": conditionFrozen, "status": "True"}}, "status", "conditions")
	}
	return slim, nil
}

func stripMetadata(object, slim *unstructured.Unstructured) {
	slim.SetNamespace(object.GetNamespace())
	slim.SetName(object.GetName())
	slim.SetResourceVersion(object.GetResourceVersion())
	slim.SetGeneration(object.GetGeneration())
	slim.SetCreationTimestamp(object.GetCreationTimestamp())
	slim.SetDeletionTimestamp(object.GetDeletionTimestamp())
	slim.SetLabels(boundedLabels(object.GetLabels()))
	all, kept := object.GetAnnotations(), map[string]string{}
	for _, key := range readAnnotations {
		if value, found := all[key]; found {
			kept[key] = value[:min(len(value), maxRefBytes)]
		}
	}
	if len(kept) > 0 {
		slim.SetAnnotations(kept)
	}
}

// estimateSize estimates the size of a decoded value in bytes.
func estimateSize(value any) int {
	sum := 8
	switch v := value.(type) {
	case string:
		sum += len(v)
	case []any:
		for _, item := range v {
			sum += estimateSize(item)
		}
	case map[string]any:
		for key, item := range v {
			sum += len(key) + estimateSize(item)
		}
	}
	return sum
}
