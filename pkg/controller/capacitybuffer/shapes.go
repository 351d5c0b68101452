// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Shapes are informers of what buffers refer to, and of ResourceQuotas. They keep only what this
// package reads, and a bounded amount of each object. A kind that must not be read stays empty, and
// the condition of buffers that need it names the missing right.
type Shapes struct {
	informers.SharedInformerFactory
	rights *access.Rights
	byKind map[string]cache.SharedIndexInformer
}

// NewShapes returns the informers. Without rights, all kinds are assumed to be readable.
func NewShapes(client kubernetes.Interface, rights *access.Rights) Shapes {
	if rights == nil {
		rights = access.New(clock.RealClock{})
	}
	s := Shapes{SharedInformerFactory: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(stripObject)), rights: rights}
	s.byKind = s.informers()
	return s
}

// Kinds that are read in addition to workloads.
const (
	podTemplates, resourceQuotas = "PodTemplate", "ResourceQuota"
)

// ruleOf returns the right to read a kind.
func ruleOf(kind string) access.Rule {
	return access.Rule{Cluster: "target", Resource: resources[kind], Without: "CapacityBuffers that refer to a " + kind + " have no chunks"}
}

var resources = map[string]schema.GroupResource{
	"Deployment": appsv1.Resource("deployments"), "ReplicaSet": appsv1.Resource("replicasets"), "StatefulSet": appsv1.Resource("statefulsets"),
	"ReplicationController": corev1.Resource("replicationcontrollers"), "Job": batchv1.Resource("jobs"),
	podTemplates: corev1.Resource("podtemplates"), resourceQuotas: corev1.Resource("resourcequotas"),
}

func (s Shapes) informers() map[string]cache.SharedIndexInformer {
	return map[string]cache.SharedIndexInformer{
		"Deployment": reading(s, "Deployment", &appsv1.Deployment{}, func(c kubernetes.Interface) access.Reader[*appsv1.DeploymentList] { return c.AppsV1().Deployments("") }),
		"ReplicaSet": reading(s, "ReplicaSet", &appsv1.ReplicaSet{}, func(c kubernetes.Interface) access.Reader[*appsv1.ReplicaSetList] { return c.AppsV1().ReplicaSets("") }),
		"StatefulSet": reading(s, "StatefulSet", &appsv1.StatefulSet{}, func(c kubernetes.Interface) access.Reader[*appsv1.StatefulSetList] {
			return c.AppsV1().StatefulSets("")
		}),
		"ReplicationController": reading(s, "ReplicationController", &corev1.ReplicationController{}, func(c kubernetes.Interface) access.Reader[*corev1.ReplicationControllerList] {
			return c.CoreV1().ReplicationControllers("")
		}),
		"Job": reading(s, "Job", &batchv1.Job{}, func(c kubernetes.Interface) access.Reader[*batchv1.JobList] { return c.BatchV1().Jobs("") }),
		podTemplates: reading(s, podTemplates, &corev1.PodTemplate{}, func(c kubernetes.Interface) access.Reader[*corev1.PodTemplateList] {
			return c.CoreV1().PodTemplates("")
		}),
		resourceQuotas: reading(s, resourceQuotas, &corev1.ResourceQuota{}, func(c kubernetes.Interface) access.Reader[*corev1.ResourceQuotaList] {
			return c.CoreV1().ResourceQuotas("")
		}),
	}
}

// reading returns the informer of a kind, which waits while the process lacks the right.
func reading[L runtime.Object](s Shapes, kind string, object runtime.Object, of func(kubernetes.Interface) access.Reader[L]) cache.SharedIndexInformer {
	return access.Informer(s.InformerFor, s.rights, ruleOf(kind), object, of)
}

// missingRight describes the right to read a kind, for a person who can grant it; empty if the
// process has it, or had it when the kind was read.
func (s Shapes) missingRight(kind string) string {
	if rule := ruleOf(kind); s.rights.Lacks(rule) && !s.byKind[kind].HasSynced() {
		return rule.String()
	}
	return ""
}

// read is done when a kind has been read or must not be read, or when ctx ends.
type read struct {
	cache.DoneChecker
	ctx    context.Context
	shapes Shapes
	kind   string
}

func (r read) Done() <-chan struct{} {
	refused := make(chan struct{}, 1)
	look := func() {
		if r.shapes.rights.Lacks(ruleOf(r.kind)) {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
	}
	r.shapes.rights.Subscribe(look)
	look()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-r.DoneChecker.Done():
		case <-refused:
		case <-r.ctx.Done():
		}
	}()
	return done
}

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
	for _, key := range []string{v1beta1.PoolAnnotation, v1beta1.DedicatedAnnotation, v1beta1.PrepareAnnotation, v1beta1.FreeRoomAnnotation} {
		if text, set := b.Annotations[key]; set {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, text[:min(len(text), maxAnnotation)])
		}
	}
	if len(slim.Spec.Limits) > maxLimits {
		slim.Spec.Limits = v1beta1.ResourceList{}
	}
	return slim
}
