// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

const (
	name = "autoscaler"
	// again is when a step that had no effect is tried again.
	again = 30 * time.Second
	// anyway is how often a Shoot is checked without an event: Workers are not watched.
	anyway = 10 * time.Minute
)

// reconciler acts for one namespace at a time. It keeps nothing in memory.
type reconciler struct {
	// client writes, and reads Extensions from a cache.
	client client.Client
	// reader reads Deployments from the API server.
	reader client.Reader
}

// AddToManager adds the controller to a manager.
func AddToManager(mgr manager.Manager) error {
	c, err := controller.New(name, mgr, controller.Options{Reconciler: &reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader()}})
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	toNamespace := handler.EnqueueRequestsFromMapFunc(namespaceOf)
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == v1alpha1.ExtensionType })
	if err := c.Watch(source.Kind[client.Object](mgr.GetCache(), &extensionsv1alpha1.Extension{}, toNamespace, ours)); err != nil {
		return fmt.Errorf("watch extensions: %w", err)
	}
	for _, deployment := range []string{mutation.DeploymentName, mutation.AutoscalerName} {
		changed, err := changedByUs(mgr, deployment)
		if err != nil {
			return err
		}
		if err := c.Watch(source.Kind[client.Object](changed, &appsv1.Deployment{}, toNamespace)); err != nil {
			return fmt.Errorf("watch deployments %s: %w", deployment, err)
		}
	}
	return nil
}

// changedByUs is a cache of the Deployments of a name that the webhook has changed. It has one name,
// because the right to watch is for two names and no others.
func changedByUs(mgr manager.Manager, name string) (cache.Cache, error) {
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&appsv1.Deployment{}: {
			Field: fields.OneTermEqualSelector("metadata.name", name), Label: labels.SelectorFromSet(labels.Set{mutation.ManagedLabel: "true"}),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of deployments %s: %w", name, err)
	}
	return made, mgr.Add(made)
}

func namespaceOf(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: v1alpha1.ExtensionType}}}
}

// Reconcile takes one step.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := request.Namespace
	s, err := r.observe(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, step := range NewPlan(s.view()) {
		log.FromContext(ctx).Info("Repairing", "namespace", namespace, "step", step)
		effective, err := r.apply(ctx, s, step)
		if err != nil {
			return reconcile.Result{}, err
		}
		if effective {
			break // the watch brings the next
		}
	}
	if len(NewPlan(s.view())) > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if s.wanted {
		return reconcile.Result{RequeueAfter: anyway}, nil
	}
	return reconcile.Result{}, nil
}
