// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// waitingPods is how many there are, -1 where nobody knows.
func (r *reading) waitingPods() int {
	if r.PodsUnknown {
		return -1
	}
	return len(r.waiting)
}

// waits says that the scheduler found no node for a pod, and that it is not about to get one.
func waits(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Status.NominatedNodeName != "" {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// guests counts the pods that make a Node busy; strangers those of them that do not tolerate the reserve taint.
func (r *reading) guests(node string) (pods, strangers int) {
	for _, p := range r.pods[node] {
		if !counts(p) {
			continue
		}
		pods++
		if !slices.ContainsFunc(p.Spec.Tolerations, toleratesReserve) {
			strangers++
		}
	}
	return pods, strangers
}

// counts says that a pod would have to move with its machine: it is no DaemonSet's, no mirror pod, and has not ended.
func counts(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(p)
	return owner == nil || owner.Kind != "DaemonSet"
}

func toleratesReserve(t corev1.Toleration) bool {
	if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
		return false
	}
	if t.Operator == corev1.TolerationOpExists {
		return t.Key == "" || t.Key == v1alpha1.ReserveTaintKey
	}
	return t.Key == v1alpha1.ReserveTaintKey && t.Value == ""
}
