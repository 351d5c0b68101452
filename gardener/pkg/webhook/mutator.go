// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/extensions/pkg/webhook"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

// mutator changes one object.
type mutator struct {
	reader client.Reader
	images Images
}

// Images that the webhooks set.
type Images struct {
	// Manager is Evenkeel's machine-controller-manager.
	Manager string
	// Autoscaler is an unmodified cluster-autoscaler.
	Autoscaler string
}

var _ webhook.Mutator = &mutator{}

// Mutate never returns an error, because the library would refuse the request.
func (m *mutator) Mutate(ctx context.Context, object, old client.Object) (_ error) {
	before := object.DeepCopyObject().(client.Object)
	logger := log.FromContext(ctx).WithValues("namespace", object.GetNamespace(), "name", object.GetName())
	undo := func(err error) {
		restore(object, before)
		logger.Error(err, "Left the object as it was written")
	}
	defer func() {
		if r := recover(); r != nil {
			undo(fmt.Errorf("panic: %v", r))
		}
	}()
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := m.change(ctx, object, old); err != nil {
		undo(err)
	}
	return nil
}

func (m *mutator) change(ctx context.Context, object, old client.Object) error {
	switch o := object.(type) {
	case *appsv1.Deployment:
		before, _ := old.(*appsv1.Deployment)
		return m.changeDeployment(ctx, o, before)
	case *extensionsv1alpha1.Worker:
		ex, state, err := m.stateOf(ctx, o.Namespace)
		if err != nil || state == nil || ex.DeletionTimestamp != nil {
			return err
		}
		if err := mutation.Pools(o, state.Config); err != nil {
			log.FromContext(ctx).Error(err, "Left pools as they were written", "namespace", o.Namespace, "name", o.Name)
		}
	}
	return nil
}

func (m *mutator) changeDeployment(ctx context.Context, d, before *appsv1.Deployment) error {
	if d.Name != mutation.DeploymentName && d.Name != mutation.AutoscalerName {
		return nil
	}
	ex, state, err := m.stateOf(ctx, d.Namespace)
	if err != nil {
		return err
	}
	if d.Name == mutation.AutoscalerName {
		return m.changeAutoscaler(ctx, d, before, state.WantsUpstream(ex))
	}
	if state == nil || state.Drained {
		mutation.Restore(d)
		return nil
	}
	server := m.serverFor(ctx, d.Namespace, before, state.WantsUpstream(ex))
	return mutation.Manager{Image: m.images.Manager, Accounting: state.Config.Accounting, Buffers: state.Config.CapacityBuffers, Server: server}.Apply(d)
}

// stateOf returns the Extension of a Shoot and its state; nil if there is none.
func (m *mutator) stateOf(ctx context.Context, namespace string) (*extensionsv1alpha1.Extension, *accepted.State, error) {
	ex := &extensionsv1alpha1.Extension{}
	err := m.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.ExtensionType}, ex)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get extension: %w", err)
	}
	state, err := accepted.Read(ex)
	return ex, state, err
}

// restore undoes a change that was made in part.
func restore(object, before client.Object) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		*o = *before.(*appsv1.Deployment)
	case *extensionsv1alpha1.Worker:
		*o = *before.(*extensionsv1alpha1.Worker)
	}
}
