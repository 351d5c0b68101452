// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// maxLimits is how many resources the limits of a buffer can name. If there are more, none is kept.
const maxLimits = 64

// maxAnnotation is how many bytes of an annotation are kept.
const maxAnnotation = 1024

// workload is what the cache keeps of a workload. Its template is nil if it has none, or has ended.
type workload struct {
	metav1.ObjectMeta
	plan.Workload
}

func stripObject(item any) (any, error) {
	switch o := item.(type) {
	case *appsv1.Deployment:
		return workloadOf(o, o.Spec.Replicas, &o.Spec.Template), nil
	case *appsv1.StatefulSet:
		return workloadOf(o, o.Spec.Replicas, &o.Spec.Template), nil
	case *appsv1.ReplicaSet:
		if metav1.GetControllerOfNoCopy(o) != nil && ptr.Deref(o.Spec.Replicas, 1) == 0 { // one of many old ones
			return workloadOf(o, o.Spec.Replicas, nil), nil
		}
		return workloadOf(o, o.Spec.Replicas, &o.Spec.Template), nil
	case *corev1.ReplicationController:
		return workloadOf(o, o.Spec.Replicas, o.Spec.Template), nil
	case *batchv1.Job:
		if o.Status.CompletionTime != nil || hasFailed(o) {
			return workloadOf(o, o.Spec.Parallelism, nil), nil
		}
		return workloadOf(o, o.Spec.Parallelism, &o.Spec.Template), nil
	case *corev1.PodTemplate:
		meta := identity(o)
		meta.Generation = o.Generation
		return &corev1.PodTemplate{ObjectMeta: meta, Template: *slimTemplate(o.Namespace, &o.Template)}, nil
	case *corev1.ResourceQuota:
		return &corev1.ResourceQuota{ObjectMeta: identity(o), Spec: corev1.ResourceQuotaSpec{Scopes: o.Spec.Scopes, ScopeSelector: o.Spec.ScopeSelector}, Status: o.Status}, nil
	}
	return item, nil
}

func workloadOf(o metav1.Object, replicas *int32, template *corev1.PodTemplateSpec) *workload {
	w := &workload{ObjectMeta: identity(o), Workload: plan.Workload{Replicas: ptr.Deref(replicas, 1)}}
	if template != nil {
		w.Template = slimTemplate(o.GetNamespace(), template)
	}
	return w
}

func hasFailed(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// slimTemplate keeps what determines where a pod may run, and which quotas concern it.
func slimTemplate(namespace string, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	chunk := plan.CompletedPod(namespace, template)
	slim := fit.Slim(chunk)
	slim.Spec.PriorityClassName, slim.Spec.ActiveDeadlineSeconds = chunk.Spec.PriorityClassName, chunk.Spec.ActiveDeadlineSeconds
	return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: slim.Labels, Annotations: slim.Annotations}, Spec: slim.Spec}
}

func identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), DeletionTimestamp: o.GetDeletionTimestamp()}
}

// StripBuffer is the transform for the informer of buffers. It keeps only the name of a buffer of
// another strategy.
func StripBuffer(item any) (any, error) {
	if b, ok := item.(*v1beta1.CapacityBuffer); ok {
		return slimBuffer(b), nil
	}
	return item, nil
}

func slimBuffer(b *v1beta1.CapacityBuffer) *v1beta1.CapacityBuffer {
	slim := &v1beta1.CapacityBuffer{ObjectMeta: identity(b)}
	if !b.Reserved() {
		return slim
	}
	slim.CreationTimestamp, slim.Generation, slim.Spec, slim.Status = b.CreationTimestamp, b.Generation, b.Spec, b.Status
	for _, key := range []string{v1beta1.PoolAnnotation, v1beta1.DedicatedAnnotation} {
		if text, set := b.Annotations[key]; set {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, text[:min(len(text), maxAnnotation)])
		}
	}
	if len(slim.Spec.Limits) > maxLimits {
		slim.Spec.Limits = v1beta1.ResourceList{}
	}
	return slim
}

// differ reports whether an update of a cached object matters.
func differ(was, is any) bool {
	switch a := was.(type) {
	case *workload:
		b, same := is.(*workload)
		return !same || a.UID != b.UID || !reflect.DeepEqual(a.Workload, b.Workload)
	case *corev1.ResourceQuota:
		b, same := is.(*corev1.ResourceQuota)
		return !same || !reflect.DeepEqual(a.Spec, b.Spec) || !reflect.DeepEqual(a.Status, b.Status)
	}
	return true
}
