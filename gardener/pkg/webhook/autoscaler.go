// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

// changeAutoscaler makes a Shoot run the unmodified cluster-autoscaler if the stored Deployment of
// its manager serves it (law 5), and otherwise the fork.
func (m *mutator) changeAutoscaler(ctx context.Context, d, before *appsv1.Deployment, wanted bool) error {
	if wanted {
		served, err := m.isServed(ctx, d.Namespace, before != nil && mutation.IsUpstream(before))
		if err != nil {
			return err
		}
		wanted = served
	}
	if !wanted {
		mutation.RestoreAutoscaler(d)
		return nil
	}
	files, err := m.secret(ctx, d.Namespace, nodegroups.ClientName)
	if err != nil {
		return err
	}
	if files == nil {
		mutation.RestoreAutoscaler(d)
		return nil
	}
	return mutation.Autoscaler{Image: m.images.Autoscaler, Files: nodegroups.FilesChecksum(files)}.Apply(d)
}

// isServed reports whether the manager serves cluster-autoscaler, and all pools. The first time,
// the server must run. Later, only the Deployment counts, so that a restart of the manager changes
// nothing here.
func (m *mutator) isServed(ctx context.Context, namespace string, already bool) (bool, error) {
	manager, err := m.deployment(ctx, namespace, mutation.DeploymentName)
	if err != nil || manager == nil || !mutation.IsServing(manager) || !already && !mutation.IsRolledOut(manager) {
		return false, err
	}
	return nodegroups.Offered(ctx, m.reader, namespace)
}

// serverFor returns the server of a manager; nil if it has none. A present server stays while the
// stored cluster-autoscaler calls it, and while that is unknown: an unused server does no harm. It does
// not stay for one that only gardenlet can replace by the fork: the extension does not wait for that.
func (m *mutator) serverFor(ctx context.Context, namespace string, before *appsv1.Deployment, wanted bool) *mutation.Server {
	there := mutation.ServerOf(before)
	if !wanted && there != nil {
		autoscaler, err := m.deployment(ctx, namespace, mutation.AutoscalerName)
		if err != nil {
			log.FromContext(ctx).Error(err, "Kept the server of node groups", "namespace", namespace)
		}
		wanted = err != nil || autoscaler != nil && mutation.IsRestorable(autoscaler)
	}
	if !wanted {
		return nil
	}
	files, err := m.secret(ctx, namespace, nodegroups.ServerName)
	if err != nil {
		log.FromContext(ctx).Error(err, "Left the server of node groups as it was", "namespace", namespace)
		return there
	}
	if files == nil {
		return nil
	}
	return &mutation.Server{Authority: nodegroups.AuthorityChecksum(files)}
}

// deployment returns a Deployment; nil if there is none.
func (m *mutator) deployment(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	return get(ctx, m.reader, namespace, name, &appsv1.Deployment{})
}

// secret returns a Secret; nil if there is none.
func (m *mutator) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get(ctx, m.reader, namespace, name, &corev1.Secret{})
}

func get[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, object T) (found T, _ error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("get %T %s: %w", object, name, err)
	}
	return object, nil
}
