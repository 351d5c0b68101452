// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	reconcilerutils "github.com/gardener/gardener/pkg/controllerutils/reconciler"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/internal/drain"
)

// retry is how soon a step is checked again.
const retry = 5 * time.Second

// drains requests and follows the drain of a namespace.
type drains func(namespace string) (*drain.Drain, error)

// Delete removes the extension from a Shoot. The additions are deleted last: until then, Evenkeel
// may run.
func (a *actuator) Delete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.withdrawUpstream(ctx, ex.Namespace); err != nil {
		return err
	}
	if err := a.stop(ctx, log, ex); err != nil {
		return err
	}
	if err := a.withdraw(ctx, ex.Namespace); err != nil {
		return err
	}
	return additions.Remove(ctx, a.client, ex.Namespace)
}

// stop restores stock machine-controller-manager in a Shoot that remains (law 2).
func (a *actuator) stop(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	state, err := accepted.Read(ex)
	if err != nil {
		return fmt.Errorf("%w; remove status.state of the Extension if stock machine-controller-manager runs", err)
	}
	if state == nil {
		return nil
	}
	cluster, err := extensionscontroller.GetCluster(ctx, a.client, ex.Namespace)
	if err != nil {
		return fmt.Errorf("get cluster: %w", err)
	}
	if cluster.Shoot.DeletionTimestamp != nil {
		return nil
	}
	d := &appsv1.Deployment{}
	err = a.reader.Get(ctx, client.ObjectKey{Namespace: ex.Namespace, Name: mutation.DeploymentName}, d)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get deployment %s: %w", mutation.DeploymentName, err)
	}
	return a.leave(ctx, log, ex, state, d)
}

func (a *actuator) leave(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, state *accepted.State, d *appsv1.Deployment) error {
	reserve, err := a.drains(ex.Namespace)
	if err != nil {
		return err
	}
	if !state.Drained && mutation.IsApplied(d) {
		if err := empty(ctx, reserve); err != nil {
			return err
		}
		log.Info("Drained the reserve")
	}
	if err := a.rememberDrained(ctx, ex, state); err != nil {
		return err
	}
	if err := a.restore(ctx, d); err != nil {
		return err
	}
	if !rolledOut(d) {
		return later(errors.New("stock machine-controller-manager does not run yet"))
	}
	return forget(ctx, reserve)
}

// empty drains the reserve. It returns an error until none is left. What it has just asked is
// looked at again: a reserve may have grown since.
func empty(ctx context.Context, d *drain.Drain) error {
	p, err := d.Progress(ctx)
	if err != nil {
		return err
	}
	waits := pending(p) // before Annotate, which counts as asked what it asks
	if err := d.Annotate(ctx, p, true); err != nil {
		return err
	}
	if len(waits) > 0 {
		return later(fmt.Errorf("the reserve is being drained: %s", strings.Join(waits, "; ")))
	}
	return nil
}

// pending describes the MachineDeployments that are not drained. One without machines is drained,
// even if no machine-controller-manager runs that could report it.
func pending(p drain.Progress) []string {
	var waits []string
	for _, pool := range p {
		if pool.There > 0 && !(drain.Progress{pool}).Done(false) {
			waits = append(waits, pool.String())
		}
	}
	return waits
}

// rememberDrained makes the webhook restore the Deployment from now on.
func (a *actuator) rememberDrained(ctx context.Context, ex *extensionsv1alpha1.Extension, state *accepted.State) error {
	before := ex.DeepCopy()
	state.Drained = true
	if err := state.Write(ex); err != nil {
		return err
	}
	return a.patchStatus(ctx, ex, before)
}

func (a *actuator) restore(ctx context.Context, d *appsv1.Deployment) error {
	before := d.DeepCopy()
	mutation.Restore(d)
	if equality.Semantic.DeepEqual(before, d) {
		return nil
	}
	err := a.client.Patch(ctx, d, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return later(fmt.Errorf("deployment %s has just been written by another client", d.Name))
	}
	if err != nil {
		return fmt.Errorf("restore deployment %s: %w", d.Name, err)
	}
	return nil
}

// rolledOut reports whether no pod of an earlier version of a Deployment runs any more, and the
// present one is not ours.
func rolledOut(d *appsv1.Deployment) bool {
	return !mutation.IsApplied(d) && mutation.IsRolledOut(d)
}

// forget removes the requests to drain: if Evenkeel is installed again, the reserve is restored.
func forget(ctx context.Context, d *drain.Drain) error {
	p, err := d.Progress(ctx)
	if err != nil {
		return err
	}
	return d.Annotate(ctx, p, false)
}

func later(cause error) error {
	return &reconcilerutils.RequeueAfterError{Cause: cause, RequeueAfter: retry}
}
