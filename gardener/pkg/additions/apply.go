// SPDX-License-Identifier: Apache-2.0

package additions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/controllerutils"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrLeaving reports that an object from before is still being deleted.
var ErrLeaving = errors.New("is still being deleted, and is created again afterwards")

// Ensure creates and updates the objects of a Shoot. It writes only those that differ. Before
// CapacityBuffers are disabled, their Reserves must be gone: see Revoke. While objects from before
// are being deleted, it returns ErrLeaving, and has to be called again.
func Ensure(ctx context.Context, c client.Client, namespace string, buffers bool) error {
	objects, err := in(namespace, buffers)
	if err != nil {
		return err
	}
	optional, err := forBuffers(namespace)
	if err != nil {
		return err
	}
	if buffers {
		return write(ctx, c, slices.Concat(objects, optional))
	}
	if err := remove(ctx, c, optional); err != nil {
		return err
	}
	return write(ctx, c, objects)
}

func write(ctx context.Context, c client.Client, objects []client.Object) error {
	var leaving []error
	for _, wanted := range objects {
		object := wanted.DeepCopyObject().(client.Object)
		if _, err := controllerutils.GetAndCreateOrMergePatch(ctx, c, object, func() error {
			copyContent(object, wanted)
			return nil
		}, controllerutils.SkipEmptyPatch{}); err != nil {
			return fmt.Errorf("write %T %s: %w", wanted, wanted.GetName(), err)
		}
		if object.GetDeletionTimestamp() != nil {
			leaving = append(leaving, fmt.Errorf("%T %s %w", wanted, wanted.GetName(), ErrLeaving))
		}
	}
	return errors.Join(leaving...)
}

// copyContent keeps labels and annotations of other clients.
func copyContent(object, wanted client.Object) {
	labels := object.GetLabels()
	for key, value := range wanted.GetLabels() {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	object.SetLabels(labels)
	switch o := object.(type) {
	case *corev1.Secret:
		o.Data = wanted.(*corev1.Secret).Data
	case *corev1.ConfigMap:
		o.Data = wanted.(*corev1.ConfigMap).Data
	case *rbacv1.RoleBinding:
		o.RoleRef, o.Subjects = wanted.(*rbacv1.RoleBinding).RoleRef, wanted.(*rbacv1.RoleBinding).Subjects
	case *resourcesv1alpha1.ManagedResource:
		o.Spec = wanted.(*resourcesv1alpha1.ManagedResource).Spec
	case *monitoringv1.ServiceMonitor:
		o.Spec = wanted.(*monitoringv1.ServiceMonitor).Spec
	case *monitoringv1.PrometheusRule:
		o.Spec = wanted.(*monitoringv1.PrometheusRule).Spec
	}
}

// Revoke takes the right to create Reserves from the manager of a Shoot (law 5).
func Revoke(ctx context.Context, c client.Client, namespace string) error {
	return remove(ctx, c, []client.Object{binding(namespace, BuffersName, buffersRole)})
}

// Remove deletes the objects of a Shoot. gardener-resource-manager deletes the rights in the Shoot
// before the ManagedResource disappears. The CRD of CapacityBuffers stays there.
func Remove(ctx context.Context, c client.Client, namespace string) error {
	objects, err := in(namespace, true)
	if err != nil {
		return err
	}
	optional, err := forBuffers(namespace)
	if err != nil {
		return err
	}
	return remove(ctx, c, slices.Concat(objects, optional))
}

// remove deletes objects in reverse order: a ManagedResource is deleted before the Secret that it
// reads.
func remove(ctx context.Context, c client.Client, objects []client.Object) error {
	var errs []error
	for _, object := range slices.Backward(objects) {
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			errs = append(errs, fmt.Errorf("delete %T %s: %w", object, object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// Keep keeps the rights in the Shoot when the ManagedResource is deleted: another seed manages
// them.
func Keep(ctx context.Context, c client.Client, namespace string) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: named(namespace, Name, nil)}
	if err := c.Get(ctx, client.ObjectKeyFromObject(resource), resource); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.MergeFrom(resource.DeepCopy())
	resource.Spec.KeepObjects = ptr.To(true)
	if err := c.Patch(ctx, resource, patch); err != nil {
		return fmt.Errorf("keep objects of managed resource %s: %w", Name, err)
	}
	return nil
}
