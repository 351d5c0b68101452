// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// What the stores hold of each kind: what is read here, and no more. Users of the target cluster decide how many and how large
// its objects are.

// stripPod keeps what package fit bounds.
func stripPod(item any) (any, error) {
	if pod, ok := item.(*corev1.Pod); ok {
		return slimPod(pod), nil
	}
	return item, nil
}

// slimPod is a slim pod that still tells whether the kubelet itself runs it, and whether it may run on a machine in reserve.
func slimPod(pod *corev1.Pod) *corev1.Pod {
	slim := fit.Slim(pod)
	if pod.Spec.NodeName != "" {
		slim.Spec.Tolerations = pool.ReserveTolerations(pod)
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, corev1.MirrorPodAnnotationKey, "")
	}
	return slim
}

func stripNode(item any) (any, error) {
	node, ok := item.(*corev1.Node)
	if !ok {
		return item, nil
	}
	slim := &corev1.Node{ObjectMeta: identity(node), Spec: corev1.NodeSpec{ProviderID: node.Spec.ProviderID, Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable}}
	slim.Labels = node.Labels
	slim.Status.Allocatable = node.Status.Allocatable
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

// stripSet keeps how many pods a ReplicaSet is to have, and whether it fails to create them: old ReplicaSets are many.
func stripSet(item any) (any, error) {
	set, ok := item.(*appsv1.ReplicaSet)
	if !ok {
		return item, nil
	}
	slim := &appsv1.ReplicaSet{ObjectMeta: identity(set), Spec: appsv1.ReplicaSetSpec{Replicas: set.Spec.Replicas}}
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure {
			slim.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

// system is how the names of priority classes begin that are the system's own.
const system = "system-"

// stripDaemonSet keeps the pod of a DaemonSet as a slim one.
func stripDaemonSet(item any) (any, error) {
	set, ok := item.(*appsv1.DaemonSet)
	if !ok {
		return item, nil
	}
	template := &set.Spec.Template
	pod := fit.Slim(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec})
	slim := &appsv1.DaemonSet{ObjectMeta: identity(set)}
	slim.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}
	if strings.HasPrefix(template.Spec.PriorityClassName, system) {
		slim.Spec.Template.Spec.PriorityClassName = system
	}
	return slim, nil
}

// stripMachine drops what no decision here reads of objects of the control cluster.
func stripMachine(item any) (any, error) {
	if object, err := meta.Accessor(item); err == nil {
		object.SetManagedFields(nil)
	}
	return item, nil
}

// identity is what names an object, and says whether it goes.
func identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}
