// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/pkg/written"
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
	s := Shapes{SharedInformerFactory: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(stripObject), informers.WithTweakListOptions(written.ListStored)), rights: rights}
	s.byKind = s.informers()
	return s
}

// Kinds that are read in addition to workloads.
const (
	podTemplates, resourceQuotas = "PodTemplate", "ResourceQuota"
)

// ruleOf returns the right to read a kind.
func ruleOf(kind string) access.Rule {
	return access.Rule{Cluster: "target", Resource: resources[kind], Without: "CapacityBuffers that need a " + kind + " have no chunks"}
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
