// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"strings"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	reconcilerutils "github.com/gardener/gardener/pkg/controllerutils/reconciler"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/validation"
	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
)

// ConditionAccepted is the condition of the Extension that reports whether its providerConfig is in
// effect.
const ConditionAccepted gardencorev1beta1.ConditionType = "EvenkeelConfigAccepted"

// actuator acts for one Extension at a time. It keeps nothing in memory.
type actuator struct {
	// client reads Clusters from a cache, and writes.
	client client.Client
	// reader reads Deployments, which are not worth a cache.
	reader client.Reader
	clock  clock.Clock
	drains drains
	// reserves are those of a namespace.
	reserves func(namespace string) (autoscalingclient.ReserveInterface, error)
	// pause is the time between two reads of them.
	pause func(context.Context) error
}

var _ extension.Actuator = &actuator{}

// Reconcile accepts the configuration, and adds rights and monitoring. The configuration takes
// effect when gardenlet writes the Deployment and the Worker, which it does afterwards. The library
// ignores when to reconcile again, and does so only after another error.
func (a *actuator) Reconcile(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return reconcilerutils.ReconcileErrCauseOrErr(a.accept(ctx, ex))
}

func (a *actuator) accept(ctx context.Context, ex *extensionsv1alpha1.Extension) error {
	cluster, err := extensionscontroller.GetCluster(ctx, a.client, ex.Namespace)
	if err != nil {
		return fmt.Errorf("get cluster: %w", err)
	}
	before := ex.DeepCopy()
	status, reason, message := gardencorev1beta1.ConditionTrue, "Accepted", "The providerConfig is valid."
	config, err := read(ex, cluster.Shoot)
	if err == nil {
		if err := (&accepted.State{Config: config}).Write(ex); err != nil {
			return err
		}
	} else {
		status, reason, message = gardencorev1beta1.ConditionFalse, "Invalid", shortened(err.Error())+standing(ex)
	}
	condition := v1beta1helper.GetOrInitConditionWithClock(a.clock, ex.Status.Conditions, ConditionAccepted)
	condition = v1beta1helper.UpdatedConditionWithClock(a.clock, condition, status, reason, message)
	ex.Status.Conditions = v1beta1helper.MergeConditions(ex.Status.Conditions, condition)
	if err := a.patchStatus(ctx, ex, before); err != nil {
		return err
	}
	return a.add(ctx, ex, cluster.Shoot)
}

// add creates what the configuration in effect needs in addition to the Deployments and the Worker.
func (a *actuator) add(ctx context.Context, ex *extensionsv1alpha1.Extension, shoot *gardencorev1beta1.Shoot) error {
	state, err := accepted.Read(ex)
	if err != nil || state == nil {
		return err
	}
	if err := a.prepareUpstream(ctx, ex, state, shoot); err != nil {
		return err
	}
	buffers := state.Config.CapacityBuffers
	if !buffers {
		if err := a.withdraw(ctx, ex.Namespace); err != nil {
			return err
		}
	}
	err = additions.Ensure(ctx, a.client, ex.Namespace, buffers)
	if errors.Is(err, additions.ErrLeaving) {
		return whenAwake(shoot, err)
	}
	return err
}

// whenAwake returns what is to be waited for. While a Shoot is hibernated, gardener-resource-manager
// does not run, and no ManagedResource disappears. The reconcile that wakes the Shoot up waits.
func whenAwake(shoot *gardencorev1beta1.Shoot, cause error) error {
	if v1beta1helper.HibernationIsEnabled(shoot) {
		return nil
	}
	return later(cause)
}

// read returns the configuration of a Shoot if it is valid.
func read(ex *extensionsv1alpha1.Extension, shoot *gardencorev1beta1.Shoot) (*v1alpha1.EvenkeelConfig, error) {
	var raw []byte
	if ex.Spec.ProviderConfig != nil {
		raw = ex.Spec.ProviderConfig.Raw
	}
	config, err := v1alpha1.Decode(raw)
	if err != nil {
		return nil, err
	}
	return config, validation.Validate(config, &shoot.Spec, field.NewPath("providerConfig")).ToAggregate()
}

// maxMessage limits what a condition shows of a configuration, in bytes. An owner can write so much
// that the API server would refuse the status.
const maxMessage = 8 << 10

func shortened(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "..."
}

// standing returns the configuration that stays in effect instead of an invalid one.
func standing(ex *extensionsv1alpha1.Extension) string {
	if ex.Status.State == nil {
		return ". Until it is corrected, the Shoot runs without Evenkeel."
	}
	return ". Until it is corrected, the last valid providerConfig counts."
}

func (a *actuator) patchStatus(ctx context.Context, ex, before *extensionsv1alpha1.Extension) error {
	if equality.Semantic.DeepEqual(before.Status, ex.Status) {
		return nil
	}
	if err := a.client.Status().Patch(ctx, ex, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch status of extension: %w", err)
	}
	return nil
}

// Restore does what Reconcile does: Gardener has restored the state.
func (a *actuator) Restore(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.Reconcile(ctx, log, ex)
}

// Migrate leaves the reserve and the manager as they are: Gardener keeps the state, and moves the
// Machines with their marks. The other seed finds the reserve and the rights in the Shoot. Reserves
// of CapacityBuffers are deleted with the namespace, and created again at the other seed.
func (a *actuator) Migrate(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.withdrawUpstream(ctx, ex.Namespace); err != nil {
		return err
	}
	if err := additions.Keep(ctx, a.client, ex.Namespace); err != nil {
		return err
	}
	return additions.Remove(ctx, a.client, ex.Namespace)
}

// ForceDelete leaves the Machines to Gardener, which deletes them.
func (a *actuator) ForceDelete(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return errors.Join(a.withdrawUpstream(ctx, ex.Namespace), additions.Remove(ctx, a.client, ex.Namespace))
}
