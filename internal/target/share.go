// SPDX-License-Identifier: Apache-2.0

package target

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxShapes limits how many shapes of pods are remembered. Beyond it, all are forgotten.
const maxShapes = 2_000

// sharing lets pods share what they have in common with the last one of their shape. An owner may
// have hundreds of thousands of pods, and most of them differ only in their names.
type sharing struct {
	mu   sync.Mutex
	last map[shape]*corev1.Pod
}

// shape identifies pods that probably have most in common: those of one owner, or of none, with or
// without a Node.
type shape struct {
	owner types.UID
	bound bool
}

// stripAndShare does what [Strip] does, and lets pods share parts. An informer whose list is
// streamed calls it twice for each pod, the second time with what the first call returned.
func (s *sharing) stripAndShare(item any) (any, error) {
	pod, ok := item.(*corev1.Pod)
	if !ok {
		return Strip(item)
	}
	if isStripped(pod) {
		return pod, nil
	}
	pod = StripPod(pod)
	s.shareParts(pod)
	return pod, nil
}

// isStripped reports whether a pod has been stripped. An API server accepts no container without an
// image, and a stripped pod has no other.
func isStripped(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) == 1 && pod.Spec.Containers[0].Image == ""
}

// shareParts replaces parts of a slim pod by the same parts of an earlier one. Neither is changed
// afterwards.
func (s *sharing) shareParts(pod *corev1.Pod) {
	at := shape{bound: pod.Spec.NodeName != ""}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		at.owner = owner.UID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last[at]; last != nil {
		share(&pod.Namespace, last.Namespace)
		share(&pod.Labels, last.Labels)
		share(&pod.Annotations, last.Annotations)
		share(&pod.OwnerReferences, last.OwnerReferences)
		share(&pod.Status, last.Status)
		shareSpec(&pod.Spec, &last.Spec)
	} else if len(s.last) >= maxShapes {
		clear(s.last)
	}
	s.last[at] = pod
}

func shareSpec(spec, last *corev1.PodSpec) {
	share(&spec.Containers, last.Containers)
	share(&spec.Affinity, last.Affinity)
	share(&spec.Tolerations, last.Tolerations)
	share(&spec.NodeSelector, last.NodeSelector)
	share(&spec.TopologySpreadConstraints, last.TopologySpreadConstraints)
	share(&spec.Volumes, last.Volumes)
	share(&spec.SchedulingGates, last.SchedulingGates)
	share(&spec.SchedulerName, last.SchedulerName)
	share(&spec.Priority, last.Priority)
	share(&spec.PreemptionPolicy, last.PreemptionPolicy)
}

// share lets a part be the same as that of another pod if they are equal.
func share[T any](part *T, other T) {
	if equality.Semantic.DeepEqual(*part, other) {
		*part = other
	}
}
