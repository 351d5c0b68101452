// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// waitingPods returns how many there are, -1 if that is unknown.
func (r *reading) waitingPods() int {
	if r.PodsUnknown {
		return -1
	}
	return len(r.waiting)
}

// isUnschedulable reports whether the scheduler found no node for a pod, and the pod is not about
// to get one.
func isUnschedulable(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Status.NominatedNodeName != "" {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}
