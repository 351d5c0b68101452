// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// Pods and Nodes are most of what a target cluster holds, and its users decide how large they are. The stores keep what is read here,
// which is of bounded size.

// nodeAnnotations are those of a Node that are read.
var nodeAnnotations = []string{
	v1alpha1.ReserveAnnotation, v1alpha1.ScaleDownDisabledAnnotation, keptByRollout, machineutils.LastAppliedALTAnnotation,
}

func stripNode(item any) (any, error) {
	node, ok := item.(*corev1.Node)
	if !ok {
		return item, nil
	}
	slim := &corev1.Node{ObjectMeta: identity(node, nodeAnnotations...)}
	slim.Spec.ProviderID, slim.Spec.Unschedulable = node.Spec.ProviderID, node.Spec.Unschedulable
	slim.Spec.Taints, slim.Status.Allocatable = node.Spec.Taints, node.Status.Allocatable
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

func stripPod(item any) (any, error) {
	pod, ok := item.(*corev1.Pod)
	if !ok {
		return item, nil
	}
	slim := &corev1.Pod{ObjectMeta: identity(pod)}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		slim.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	}
	if safe := pod.Annotations[signs.SafeToEvict]; safe == "true" || safe == "false" {
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, signs.SafeToEvict, safe)
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		slim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	slim.Spec.Tolerations = pool.ReserveTolerations(pod)
	slim.Spec.NodeName, slim.Status.Phase = pod.Spec.NodeName, pod.Status.Phase
	return slim, nil
}

// identity is who an object is, with those of its annotations that are named.
func identity(o metav1.Object, annotations ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
	for _, key := range annotations {
		if value, there := o.GetAnnotations()[key]; there {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[key] = value
		}
	}
	return m
}
