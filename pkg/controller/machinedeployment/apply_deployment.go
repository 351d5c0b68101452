// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// confirmDeployment reads the MachineDeployment, before something is decided about its MachineSets, and
// returns a conflict if it is not as it was looked at.
func (a *application) confirmDeployment(ctx context.Context) error {
	d := a.deployment
	if d == nil || a.confirmed[d.UID] {
		return nil
	}
	live, err := a.client.MachineDeployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return conflictError("machinedeployments", d.Name, "it no longer exists")
	case err != nil:
		return fmt.Errorf("read machine deployment %s: %w", d.Name, err)
	}
	if a.writtenDeployments.Record(live); live.UID != d.UID || live.ResourceVersion != d.ResourceVersion {
		return conflictError("machinedeployments", d.Name, "it has changed since the decision")
	}
	a.confirmed[d.UID] = true
	return nil
}

// changeDeployment writes what differs in the MachineDeployment, and remembers what was decided with it.
func (a *application) changeDeployment(ctx context.Context, p plan.Plan) error {
	if p.Deployment != nil {
		if err := a.patchDeployment(ctx, p.Deployment.After); err != nil {
			return err
		}
		a.recordEvents(a.withoutPruned(p.Deployment.Events))
	}
	a.remember(a.view, p)
	return nil
}

// withoutPruned returns the events of a change of the MachineDeployment. If the API server does not store
// the field, it has not been restored.
func (a *application) withoutPruned(events []plan.Event) []plan.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e plan.Event) bool {
		if e.Reason != plan.ExcessRestored {
			return false
		}
		if a.deployment.Spec.ExcessReplicas == nil {
			return true
		}
		a.reserves.metrics.restored.Inc()
		return false
	})
}

// reportDeployment writes the status of the MachineDeployment.
func (a *application) reportDeployment(ctx context.Context, change *plan.DeploymentStatusChange) error {
	if change == nil {
		return nil
	}
	after := reportedDeployment(a.deployment, a.view.Deployment.Generation, *change)
	was := machinetaint.Condition(a.deployment)
	if err := a.patchStatus(ctx, after); err != nil {
		return err
	}
	a.recordEvents(change.Events)
	if was != nil && machinetaint.Condition(after) == nil && a.reserves != nil && a.reserves.settings.Drain {
		klog.FromContext(ctx).Info("The reserve is given up")
	}
	return nil
}

// patchStatus writes the status of the MachineDeployment, unless only fields differ that the API server drops.
// With others, it is sent these, too: it may store them by now.
func (a *application) patchStatus(ctx context.Context, after *machine.MachineDeployment) error {
	stored := *after
	if stored.Status = a.pruned.without(after.Status, a.deployment); mergePatch(a.deployment, &stored) == nil {
		return nil
	}
	return a.patchDeployment(ctx, after, "status")
}

// reportedDeployment returns a MachineDeployment with a new status, which was decided for a generation. Its
// spec may have been changed by the same plan.
func reportedDeployment(before *machine.MachineDeployment, decided int64, change plan.DeploymentStatusChange) *machine.MachineDeployment {
	after := before.DeepCopy()
	after.Status = change.After
	if change.After.ObservedGeneration == decided {
		after.Status.ObservedGeneration = before.Generation
	}
	return after
}

// patchDeployment writes what differs in the MachineDeployment.
func (a *application) patchDeployment(ctx context.Context, after *machine.MachineDeployment, subresource ...string) error {
	before := a.deployment
	patch := mergePatch(before, after)
	if patch == nil {
		return nil
	}
	answer, err := a.client.MachineDeployments(before.Namespace).Patch(ctx, before.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresource...)
	a.countWrite(cmp.Or(strings.Join(subresource, ""), "machinedeployment"), before.ResourceVersion, answer, err)
	if err != nil {
		return written.IgnoreNotFound(fmt.Errorf("write machine deployment %s: %w", before.Name, err))
	}
	a.writtenDeployments.Record(answer)
	a.pruned.compare(after, answer)
	a.deployment, a.confirmed[before.UID] = answer, true
	klog.FromContext(ctx).V(2).Info("Wrote machine deployment", "machineDeployment", before.Name, "patch", string(patch))
	return nil
}

// claimSets adopts and releases MachineSets.
func (a *application) claimSets(ctx context.Context, claims []plan.SetClaim) error {
	if len(claims) == 0 {
		return nil
	}
	if err := a.confirmDeployment(ctx); err != nil {
		return err
	}
	var errs []error
	for _, one := range claims {
		errs = append(errs, a.patchSet(ctx, one.Set, claimedSet(a.deployment, one)))
	}
	return errors.Join(errs...)
}

// claimedSet returns a MachineSet that is adopted or released.
func claimedSet(d *machine.MachineDeployment, one plan.SetClaim) *mcm.MachineSet {
	after := one.Set.DeepCopy()
	after.OwnerReferences = claimed(after.OwnerReferences, d, deploymentKind, one.Adopt)
	return after
}

// createSets creates MachineSets. It returns their first machines, which are to be created, too, and the
// status of the MachineDeployment, which is another one than in the plan if it could not be done.
func (a *application) createSets(ctx context.Context, p plan.Plan) (first []plan.Creation, status *plan.DeploymentStatusChange, err error) {
	if len(p.NewSets) == 0 {
		return nil, p.DeploymentStatus, nil
	}
	if err := a.confirmDeployment(ctx); err != nil {
		return nil, nil, err
	}
	for _, set := range p.NewSets {
		answer, err := a.client.MachineSets(set.Namespace).Create(ctx, set, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			status, err := a.recognizeSet(ctx, set)
			return nil, status, err
		case err != nil:
			err = fmt.Errorf("create machine set %s: %w", set.Name, err)
			if isRefused(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return nil, a.view.WithRefused(err.Error()), err
			}
			return nil, nil, err
		}
		first = append(first, a.noteSet(ctx, answer)...)
	}
	return first, p.DeploymentStatus, nil
}

// noteSet notes a MachineSet that was created, and returns its first machines.
func (a *application) noteSet(ctx context.Context, set *mcm.MachineSet) []plan.Creation {
	a.writtenSets.Record(set)
	a.current[set.UID], a.confirmed[set.UID] = set, true
	klog.FromContext(ctx).V(2).Info("Created machine set", "machineDeployment", a.deployment.Name, "machineSet", set.Name)
	if n := set.Spec.Replicas; n > 0 {
		a.recorder.Eventf(referenceTo(deploymentKind, a.deployment), corev1.EventTypeNormal, "ScalingMachineSet", "Scaled up machine set %s to %d", set.Name, n)
	}
	return firstMachines(a.view, set)
}

// firstMachines returns the machines that are created with a MachineSet. If there is a reserve, the next
// plan decides which of them serve.
func firstMachines(v plan.View, set *mcm.MachineSet) []plan.Creation {
	n := int(set.Spec.Replicas)
	if n == 0 || v.Reserve != nil {
		return nil
	}
	return []plan.Creation{{Set: set, Count: min(n, plan.Burst)}}
}

// recognizeSet looks at a MachineSet that has the name of a new one: an earlier request may have created
// it. If it is another one, the next one gets another name.
func (a *application) recognizeSet(ctx context.Context, set *mcm.MachineSet) (*plan.DeploymentStatusChange, error) {
	live, err := a.client.MachineSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read machine set %s: %w", set.Name, err)
	case !a.view.IsNewSet(live):
		return a.view.WithCollision(), conflictError("machinesets", set.Name, "another one has this name")
	case metav1.GetControllerOfNoCopy(live) == nil:
		return nil, conflictError("machinesets", set.Name, "it is yet to be adopted")
	}
	a.writtenSets.Record(live)
	return nil, nil
}

// changeSets writes what differs in MachineSets.
func (a *application) changeSets(ctx context.Context, changes []plan.SetChange) error {
	if len(changes) == 0 {
		return nil
	}
	if err := a.confirmDeployment(ctx); err != nil {
		return err
	}
	var errs []error
	for _, change := range changes {
		if err := a.patchSet(ctx, change.Before, change.After); err != nil {
			if errs = append(errs, err); change.Shrinks() {
				break
			}
			continue
		}
		a.recordEvents(change.Events)
	}
	return errors.Join(errs...)
}

// deleteSets deletes MachineSets at the version that was looked at.
func (a *application) deleteSets(ctx context.Context, sets []*mcm.MachineSet) error {
	if len(sets) == 0 {
		return nil
	}
	if err := a.confirmDeployment(ctx); err != nil {
		return err
	}
	return inParallel(sets, func(set *mcm.MachineSet) error {
		version := a.current[set.UID].ResourceVersion
		err := a.client.MachineSets(set.Namespace).Delete(ctx, set.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &set.UID, ResourceVersion: &version},
		})
		if err != nil {
			return written.IgnoreNotFound(fmt.Errorf("delete machine set %s: %w", set.Name, err))
		}
		klog.FromContext(ctx).V(2).Info("Deleted machine set", "machineSet", set.Name)
		return nil
	})
}

func (a *application) changeNodes(ctx context.Context, changes []plan.NodeChange) error {
	return inParallel(changes, func(change plan.NodeChange) error { return a.changeNode(ctx, change) })
}

// changeNode writes what differs in a Node, except for its status.
func (a *application) changeNode(ctx context.Context, change plan.NodeChange) error {
	patch := mergePatch(change.Before, change.After)
	if patch == nil {
		return nil
	}
	answer, err := a.nodeClient.Patch(ctx, change.Before.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	a.countWrite("node", change.Before.ResourceVersion, answer, err)
	if closes := !pool.HasReserveTaint(change.Before.Spec.Taints) && pool.HasReserveTaint(change.After.Spec.Taints); closes {
		a.memory.noteClosable(change.Before.Name, written.Outcome(err) != written.Refused)
	}
	if err != nil {
		if isInDoubt(err) {
			a.memory.noteNode(change.Before.Name)
		}
		if stores.Find[corev1.Node](a.nodes, change.Before.Name) == nil {
			a.memory.forgetNode(change.Before.Name) // its deletion has been seen already
		}
		return written.IgnoreNotFound(fmt.Errorf("write node %s: %w", change.Before.Name, err))
	}
	a.writtenNodes.Record(answer)
	klog.FromContext(ctx).V(2).Info("Wrote node", "node", change.Before.Name, "patch", string(patch))
	return nil
}

// open opens a Node that leaves the reserve.
func (a *application) open(ctx context.Context, change plan.NodeChange) error {
	err := a.changeNode(ctx, change)
	if err == nil && pool.HasReserveTaint(change.Before.Spec.Taints) && !pool.HasReserveTaint(change.After.Spec.Taints) {
		a.reserves.metrics.untainted.Observe(a.clock.Since(a.view.Now).Seconds())
	}
	return err
}
