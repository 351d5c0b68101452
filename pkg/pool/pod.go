// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// IsWorkload reports whether a pod makes its machine busy: it has not finished, and is there for more than
// its Node's sake.
func IsWorkload(pod *corev1.Pod) bool { return !Finished(pod) && !IsNodeAgent(pod) }

// IsNodeAgent reports whether a pod is there for its Node's sake: a DaemonSet or the kubelet itself runs it,
// or it belongs to the Node.
func IsNodeAgent(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// Finished reports whether a pod has ended and needs no more room.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ReserveEffects returns the effects of the taint that holds a machine in reserve, or would hold
// it.
func ReserveEffects(m *mcm.Machine) []corev1.TaintEffect {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	for _, taint := range m.Spec.NodeTemplateSpec.Spec.Taints {
		if taint.Key == machine.ReserveTaintKey && !slices.Contains(effects, taint.Effect) {
			effects = append(effects, taint.Effect)
		}
	}
	return effects
}

// ToleratesReserve reports whether a pod tolerates the reserve taint with each of these effects.
func ToleratesReserve(pod *corev1.Pod, effects []corev1.TaintEffect) bool {
	return !slices.ContainsFunc(effects, func(effect corev1.TaintEffect) bool {
		return !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, effect) })
	})
}

// ReserveTolerations returns the tolerations of a pod that matter to [ToleratesReserve], at most
// one for each effect. A cache needs to keep only these.
func ReserveTolerations(pod *corev1.Pod) (all []corev1.Toleration) {
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute} {
		matches := func(t corev1.Toleration) bool { return tolerates(t, effect) }
		if i := slices.IndexFunc(pod.Spec.Tolerations, matches); i >= 0 && !slices.ContainsFunc(all, matches) {
			all = append(all, pod.Spec.Tolerations[i])
		}
	}
	return all
}

// tolerates does what Kubernetes' own function does for a taint without a value; that function
// requires a logger.
func tolerates(t corev1.Toleration, effect corev1.TaintEffect) bool {
	switch {
	case t.Effect != "" && t.Effect != effect, t.Key != "" && t.Key != machine.ReserveTaintKey:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == ""
}
