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

// sharing lets pods of one owner share what they have in common. An owner may have hundreds of
// thousands of pods, and most of them differ only in their names.
type sharing struct {
	mu    sync.Mutex
	known map[shape]*corev1.Pod
}

// shape identifies pods that probably have most in common: those of one owner, with or without a
// Node.
type shape struct {
	owner types.UID
	bound bool
}

// stripAndShare does what [Strip] does, and lets pods share parts.
func (s *sharing) stripAndShare(item any) (any, error) {
	item, err := Strip(item)
	if pod, ok := item.(*corev1.Pod); ok {
		s.shareParts(pod)
	}
	return item, err
}

// shareParts replaces parts of a slim pod by the same parts of an earlier one. Neither is ever
// changed.
func (s *sharing) shareParts(pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := shape{owner.UID, pod.Spec.NodeName != ""}
	known := s.known[at]
	if known == nil || !differInState(known, pod) {
		if len(s.known) >= maxShapes {
			clear(s.known)
		}
		s.known[at] = pod
		return
	}
	node := pod.Spec.NodeName
	pod.Namespace, pod.Labels, pod.OwnerReferences, pod.Annotations = known.Namespace, known.Labels, known.OwnerReferences, known.Annotations
	pod.Spec = known.Spec
	pod.Spec.NodeName = node
	if equality.Semantic.DeepEqual(known.Status, pod.Status) {
		pod.Status = known.Status
	}
}

// differInState reports whether two slim pods of one owner differ only in their names, Nodes and
// states.
func differInState(a, b *corev1.Pod) bool {
	x, y := a.Spec, b.Spec
	x.NodeName, y.NodeName = "", ""
	return a.Namespace == b.Namespace && equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) && equality.Semantic.DeepEqual(x, y)
}
