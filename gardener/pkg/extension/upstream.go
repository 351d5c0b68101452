// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

// prepareUpstream creates what an unmodified cluster-autoscaler needs, or deletes it.
func (a *actuator) prepareUpstream(ctx context.Context, ex *extensionsv1alpha1.Extension, state *accepted.State, shoot *gardencorev1beta1.Shoot) error {
	if !state.WantsUpstream(ex) {
		return a.withdrawUpstream(ctx, ex.Namespace)
	}
	return nodegroups.Ensure(ctx, a.client, ex.Namespace, nodegroups.RotationOf(shoot), a.clock.Now())
}

// withdrawUpstream restores the fork, then the manager without its server, and deletes the rest
// (law 7). It repeats this until both are seen, because the webhook may act on an older state.
func (a *actuator) withdrawUpstream(ctx context.Context, namespace string) error {
	for range looks {
		changed, err := a.stepBack(ctx, namespace)
		if err != nil {
			return err
		}
		if !changed {
			return nodegroups.Remove(ctx, a.client, namespace)
		}
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
	return later(errors.New("cluster-autoscaler and machine-controller-manager are still changed for autoscaler: upstream"))
}

// stepBack restores what is not restored yet, and reports whether there was anything.
func (a *actuator) stepBack(ctx context.Context, namespace string) (bool, error) {
	changed, err := a.patchDeployment(ctx, namespace, mutation.AutoscalerName, mutation.IsUpstream, mutation.RestoreAutoscaler)
	if changed || err != nil {
		return changed, err
	}
	return a.patchDeployment(ctx, namespace, mutation.DeploymentName, mutation.IsServing, mutation.WithoutServer)
}

// patchDeployment changes a Deployment that meets a condition. If another client writes it meanwhile,
// it has to be looked at again. If there is nothing to change, because what gardenlet wrote is lost,
// no look helps: gardenlet writes the Deployment again after this reconcile.
func (a *actuator) patchDeployment(ctx context.Context, namespace, name string, holds func(*appsv1.Deployment) bool, change func(*appsv1.Deployment)) (bool, error) {
	d := &appsv1.Deployment{}
	err := a.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
	if apierrors.IsNotFound(err) || err == nil && !holds(d) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get deployment %s: %w", name, err)
	}
	before := d.DeepCopy()
	change(d)
	if equality.Semantic.DeepEqual(before, d) {
		return false, nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := a.client.Patch(ctx, d, patch); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("patch deployment %s: %w", name, err)
	}
	return true, nil
}
