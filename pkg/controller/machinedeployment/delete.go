// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"context"
	"errors"
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// markAttempts bounds how often a machine is read again because the machine controller wrote it
// meanwhile.
const markAttempts = 5

// delete deletes machines.
func (a *application) delete(ctx context.Context, deletions []plan.Deletion) error {
	var errs []error
	var confirmed []plan.Deletion
	refused := map[types.UID]bool{}
	for _, d := range deletions {
		if refused[d.Set.UID] {
			continue
		}
		if err := a.confirm(ctx, d.Set); err != nil {
			refused[d.Set.UID] = true
			errs = append(errs, err)
			continue
		}
		confirmed = append(confirmed, d)
	}
	return errors.Join(append(errs, inParallel(confirmed, func(d plan.Deletion) error { return a.deleteOne(ctx, d) }))...)
}

// deleteOne deletes a machine at the version that was looked at, and sets its phase, so that another
// one is created in its place at once. If that fails, it may have taken effect all the same: the machine
// is read before the next decision.
func (a *application) deleteOne(ctx context.Context, d plan.Deletion) error {
	m := d.Machine
	if !a.memory.beginDeletion(m.UID) {
		return conflictError("machines", m.Name, "it is being released")
	}
	defer a.memory.endDeletion(m.UID)
	if d.Reason == plan.Surplus {
		if err := a.confirmGoing(ctx, m); err != nil {
			return err
		}
	}
	err := a.client.Machines(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err):
		a.memory.noteGone(m, a.isShown)
		return nil
	case err != nil:
		a.memory.noteDoubt(d.Set.UID, m)
		if !apierrors.IsConflict(err) {
			a.recorder.Eventf(referenceTo(setKind, d.Set), corev1.EventTypeWarning, "FailedDelete", "Deleting machine %s failed: %v", m.Name, err)
		}
		return fmt.Errorf("delete machine %s: %w", m.Name, err)
	}
	a.metrics.noteDeleted(m)
	klog.FromContext(ctx).V(2).Info("Deleted machine", "machineSet", d.Set.Name, "machine", m.Name, "because", d.Reason)
	a.recorder.Eventf(referenceTo(setKind, d.Set), corev1.EventTypeNormal, "SuccessfulDelete", "Deleted machine %s", m.Name)
	return a.markTerminating(ctx, d.Set, m)
}

// markTerminating sets the phase of a machine that was deleted, unless the machine controller has done
// so.
func (a *application) markTerminating(ctx context.Context, set *mcm.MachineSet, m *mcm.Machine) error {
	for attempt := 1; ; attempt++ {
		live, err := a.readMachine(ctx, m)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			a.memory.noteDoubt(set.UID, m)
			return err
		case live.Status.CurrentStatus.Phase == mcm.MachineTerminating:
			return nil
		}
		err = a.patchTerminating(ctx, live)
		if !apierrors.IsConflict(err) || attempt == markAttempts {
			return written.IgnoreNotFound(err)
		}
	}
}

// patchTerminating replaces the status as machine-controller-manager does: the machine controller
// starts over with a description that is none of its own.
func (a *application) patchTerminating(ctx context.Context, live *mcm.Machine) error {
	after := terminatingMachine(live, metav1.NewTime(a.clock.Now()))
	answer, err := a.client.Machines(live.Namespace).Patch(ctx, live.Name, types.MergePatchType, mergePatch(live, after), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("write status of machine %s: %w", live.Name, err)
	}
	a.writtenMachines.Record(answer)
	return nil
}

// terminatingMachine returns a machine that was deleted, with its phase.
func terminatingMachine(m *mcm.Machine, now metav1.Time) *mcm.Machine {
	after := m.DeepCopy()
	after.Status.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineTerminating, LastUpdateTime: now}
	after.Status.LastOperation = mcm.LastOperation{
		Description: "Deleting machine from cloud provider", State: mcm.MachineStateProcessing, Type: mcm.MachineOperationDelete, LastUpdateTime: now,
	}
	return after
}
