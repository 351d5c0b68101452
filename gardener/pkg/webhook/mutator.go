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
	// image is that of Evenkeel's machine-controller-manager.
	image string
}

var _ webhook.Mutator = &mutator{}

// Mutate never returns an error, because the library would refuse the request.
func (m *mutator) Mutate(ctx context.Context, object, _ client.Object) (_ error) {
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
	if err := m.change(ctx, object); err != nil {
		undo(err)
	}
	return nil
}

func (m *mutator) change(ctx context.Context, object client.Object) error {
	switch o := object.(type) {
	case *appsv1.Deployment:
		if o.Name != mutation.DeploymentName {
			return nil
		}
		_, state, err := m.stateOf(ctx, o.Namespace)
		if err != nil {
			return err
		}
		return m.changeDeployment(o, state)
	case *extensionsv1alpha1.Worker:
		ex, state, err := m.stateOf(ctx, o.Namespace)
		if err != nil || state == nil || ex.DeletionTimestamp != nil {
			return err
		}
		return mutation.Pools(o, state.Config)
	}
	return nil
}

func (m *mutator) changeDeployment(d *appsv1.Deployment, state *accepted.State) error {
	if state == nil || state.Drained {
		mutation.Restore(d)
		return nil
	}
	return mutation.Manager{Image: m.image, Accounting: state.Config.Accounting, Buffers: state.Config.CapacityBuffers}.Apply(d)
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
