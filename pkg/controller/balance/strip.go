// SPDX-License-Identifier: Apache-2.0

package balance

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// daemonPod is cluster-autoscaler's annotation of pods to count as a DaemonSet's.
const daemonPod = "cluster-autoscaler.kubernetes.io/daemonset-pod"

// stripPod keeps what is read of a pod, which is bounded whatever its author wrote. One that runs may have to run elsewhere, so
// it keeps what decides that, as one that waits does.
func stripPod(item any) (any, error) {
	pod, ok := item.(*corev1.Pod)
	if !ok {
		return item, nil
	}
	unbound := *pod
	unbound.Spec.NodeName = ""
	slim := fit.Slim(&unbound)
	if pod.Spec.NodeName != "" {
		slim.Spec.NodeName = pod.Spec.NodeName
		slim.Spec.Containers[0].Resources = fit.Slim(pod).Spec.Containers[0].Resources
	}
	if len(slim.Spec.Tolerations) == 0 { // it has none, or too many to be kept
		slim.Spec.Tolerations = pool.ReserveTolerations(pod)
	}
	for _, key := range []string{corev1.MirrorPodAnnotationKey, signs.SafeToEvict, daemonPod} {
		if value, there := pod.Annotations[key]; there {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value[:min(len(value), len("false"))])
		}
	}
	return slim, nil
}

// stripNode keeps what is read of a Node.
func stripNode(item any) (any, error) {
	node, ok := item.(*corev1.Node)
	if !ok {
		return item, nil
	}
	slim := &corev1.Node{ObjectMeta: identity(node), Spec: corev1.NodeSpec{ProviderID: node.Spec.ProviderID, Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable}}
	slim.Labels = node.Labels
	if reserve, there := node.Annotations[v1alpha1.ReserveAnnotation]; there {
		slim.Annotations = map[string]string{v1alpha1.ReserveAnnotation: reserve}
	}
	slim.Status.Capacity, slim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return slim, nil
}

// stripBudget keeps what is read of a PodDisruptionBudget. One whose selector is too large to be read lets no pod of its
// namespace go.
func stripBudget(item any) (any, error) {
	budget, ok := item.(*policyv1.PodDisruptionBudget)
	if !ok {
		return item, nil
	}
	slim := &policyv1.PodDisruptionBudget{ObjectMeta: identity(budget)}
	slim.Spec.Selector, slim.Status.DisruptionsAllowed = budget.Spec.Selector, budget.Status.DisruptionsAllowed
	if slim.Spec.Selector.Size() > fit.MaxBytes {
		slim.Spec.Selector, slim.Status.DisruptionsAllowed = &metav1.LabelSelector{}, 0
	}
	return slim, nil
}

func identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}
