// SPDX-License-Identifier: Apache-2.0

package pool

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SafeToEvict is the annotation of pods by which cluster-autoscaler decides whether it may evict
// them: "true" or "false".
const SafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"

// Pin is why a pod must not be evicted, whatever its PodDisruptionBudget allows.
type Pin string

const (
	// Unpinned pods may be evicted.
	Unpinned Pin = ""
	// NotSafeToEvict pods have the annotation [SafeToEvict] with the value "false".
	NotSafeToEvict Pin = "NotSafeToEvict"
	// NotReplicated pods have no controller that replaces them, and are not annotated as safe to
	// evict.
	NotReplicated Pin = "NotReplicated"
)

// PinOf returns why a pod must not be evicted. Callers must leave out pods of DaemonSets, mirror
// pods and finished pods: these never keep a machine.
func PinOf(pod *corev1.Pod) Pin {
	switch safe := pod.Annotations[SafeToEvict]; {
	case safe == "false":
		return NotSafeToEvict
	case safe != "true" && metav1.GetControllerOfNoCopy(pod) == nil:
		return NotReplicated
	}
	return Unpinned
}
