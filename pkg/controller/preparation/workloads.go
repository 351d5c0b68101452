// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// workload names one of a namespace, as Kind/name.
type workload struct{ namespace, name string }

// workloads follows those whose images are prepared, each with a watch of its own: they are few among
// many.
type workloads struct {
	client  kubernetes.Interface
	changed func()

	followed map[workload]*follower // belongs to the sync of the controller
	running  sync.WaitGroup
}

// follower follows one workload.
type follower struct {
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc
	mu       sync.Mutex
	trouble  error
}

// follow follows these workloads, and no others any more.
func (w *workloads) follow(ctx context.Context, wanted map[workload]bool) {
	for one, f := range w.followed {
		if !wanted[one] {
			f.cancel()
			delete(w.followed, one)
		}
	}
	for one := range wanted {
		if w.followed[one] == nil {
			w.followed[one] = w.start(ctx, one)
		}
	}
}

func (w *workloads) start(ctx context.Context, one workload) *follower {
	ctx, cancel := context.WithCancel(ctx)
	kind, name, _ := strings.Cut(one.name, "/")
	source := cache.NewListWatchFromClient(kinds[kind].client(w.client), strings.ToLower(kind)+"s", one.namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	f := &follower{cancel: cancel}
	begin := source.WatchFuncWithContext
	source.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		events, err := begin(ctx, o)
		if err == nil && f.setTrouble(nil) {
			w.changed()
		}
		return events, err
	}
	f.informer = cache.NewSharedIndexInformer(source, kinds[kind].object, 0, nil)
	_ = f.informer.SetTransform(stripWorkload) // fails only once it runs
	_ = f.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		f.setTrouble(err)
		w.changed()
	})
	_, _ = f.informer.AddEventHandler(handlers.OnEvent(w.changed))
	w.running.Go(func() { f.informer.RunWithContext(ctx) })
	w.running.Go(func() {
		if cache.WaitFor(ctx, "", f.informer.HasSyncedChecker()) {
			w.changed()
		}
	})
	return f
}

// kinds are the kinds that can be followed: autoscaling.PreparedKinds.
var kinds = map[string]struct {
	object runtime.Object
	client func(kubernetes.Interface) rest.Interface
}{
	"DaemonSet":             {&appsv1.DaemonSet{}, appsClient},
	"Deployment":            {&appsv1.Deployment{}, appsClient},
	"Job":                   {&batchv1.Job{}, func(c kubernetes.Interface) rest.Interface { return c.BatchV1().RESTClient() }},
	"PodTemplate":           {&corev1.PodTemplate{}, coreClient},
	"ReplicaSet":            {&appsv1.ReplicaSet{}, appsClient},
	"ReplicationController": {&corev1.ReplicationController{}, coreClient},
	"StatefulSet":           {&appsv1.StatefulSet{}, appsClient},
}

func appsClient(c kubernetes.Interface) rest.Interface { return c.AppsV1().RESTClient() }
func coreClient(c kubernetes.Interface) rest.Interface { return c.CoreV1().RESTClient() }

// setTrouble records why the workload cannot be read, nil if it can be, and reports whether that has begun or ended.
func (f *follower) setTrouble(err error) (turned bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.trouble
	f.trouble = err
	return (was == nil) != (err == nil)
}

// stripWorkload leaves only what wishes need.
func stripWorkload(item any) (any, error) {
	template := templateOf(item)
	if template == nil {
		return item, nil
	}
	slim := corev1.PodTemplateSpec{Spec: corev1.PodSpec{ImagePullSecrets: template.Spec.ImagePullSecrets, ServiceAccountName: template.Spec.ServiceAccountName}}
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		slim.Spec.Containers = append(slim.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	*template = slim
	return item, nil
}

func templateOf(item any) *corev1.PodTemplateSpec {
	switch o := item.(type) {
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *corev1.PodTemplate:
		return &o.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	}
	return nil
}

// isRead reports whether it is known if a workload exists.
func (w *workloads) isRead(one workload) bool {
	f := w.followed[one]
	return f == nil || f.informer.HasSynced()
}

// wishOf returns the wish of a workload, or why there is none.
func (w *workloads) wishOf(one workload) (*plan.Wish, *plan.Failure) {
	f := w.followed[one]
	if f == nil {
		return nil, nil
	}
	for _, item := range f.informer.GetStore().List() {
		if template := templateOf(item); template != nil {
			wish := wishOfTemplate(one.namespace, template)
			return &wish, nil
		}
	}
	f.mu.Lock()
	trouble := f.trouble
	f.mu.Unlock()
	switch {
	case trouble != nil:
		return nil, &plan.Failure{Reason: plan.Refused, Message: fmt.Sprintf("read %s in namespace %s: %v", one.name, one.namespace, trouble)}
	case f.informer.HasSynced():
		return nil, &plan.Failure{Reason: plan.WorkloadNotFound, Message: fmt.Sprintf("%s does not exist in namespace %s", one.name, one.namespace)}
	}
	return nil, nil
}

// wishOfTemplate returns the wish for the pods of a template.
func wishOfTemplate(namespace string, template *corev1.PodTemplateSpec) plan.Wish {
	var images, secrets []string
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		images = append(images, c.Image)
	}
	for _, s := range template.Spec.ImagePullSecrets {
		secrets = append(secrets, s.Name)
	}
	return plan.NewWish(namespace, images, secrets, template.Spec.ServiceAccountName)
}
