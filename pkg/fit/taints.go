// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// cordoned is the taint of a node that accepts no new pods.
var cordoned = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// repels reports whether one of the taints keeps the pod away.
func repels(taints []corev1.Taint, pod *corev1.Pod) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(pod.Spec.Tolerations, t)
	})
}

func tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case "", corev1.TolerationOpEqual:
			return t.Value == taint.Value
		}
		return false
	})
}

// taintsOf returns the taints of a node, including the one for a cordoned node.
func taintsOf(node *corev1.Node) []corev1.Taint {
	if !node.Spec.Unschedulable {
		return node.Spec.Taints
	}
	return append(slices.Clone(node.Spec.Taints), cordoned)
}

// lasting returns the taints without those with the given keys.
func lasting(taints []corev1.Taint, without []string) []corev1.Taint {
	gone := func(t corev1.Taint) bool { return slices.Contains(without, t.Key) }
	if !slices.ContainsFunc(taints, gone) {
		return taints
	}
	return slices.DeleteFunc(slices.Clone(taints), gone)
}
