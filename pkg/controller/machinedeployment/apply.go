// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// maxParallel is how many machines are written at the same time.
const maxParallel = 16

// application carries out a plan.
type application struct {
	*Controller
	view plan.View
	// deployment is the MachineDeployment after the writes so far, nil if there is none.
	deployment *machine.MachineDeployment
	// current are the MachineSets after the writes so far, by UID.
	current map[types.UID]*mcm.MachineSet
	// confirmed are the objects that are as they were looked at, by UID.
	confirmed map[types.UID]bool
	// elsewhere reports whether another key takes some of the machines out of the reserve.
	elsewhere atomic.Bool

	mu sync.Mutex
	// machinesWritten are the machines that were written, by name.
	machinesWritten map[string]*mcm.Machine
}

func newApplication(c *Controller, v plan.View) *application {
	a := &application{
		Controller: c, view: v, deployment: v.Deployment, current: map[types.UID]*mcm.MachineSet{}, confirmed: map[types.UID]bool{},
		machinesWritten: map[string]*mcm.Machine{},
	}
	for _, s := range v.Sets {
		a.current[s.Object.UID] = s.Object
	}
	return a
}

// apply carries out a plan. What fails before machines are created and deleted ends it. The rest is
// independent: what fails does not delay the others. Nodes that pods may wait for are written beside all
// others, because creations take their time. Machines enter the reserve once those that serve in their
// place have left it. Elsewhere reports whether another key takes some of them out of the reserve.
func (c *Controller) apply(ctx context.Context, v plan.View, p plan.Plan) (elsewhere bool, err error) {
	a := newApplication(c, v)
	leaving, entering, held := takeMoves(&p, leaves), takeMoves(&p, enters), takeMoves(&p, stays)
	var urgent []plan.NodeChange
	urgent, p.Nodes = split(p.Nodes, func(n plan.NodeChange) bool { return n.Urgent })
	err = inParallel([]func() error{
		func() error { return a.changeNodes(ctx, urgent) },
		func() error { return a.hold(ctx, held) },
		func() error {
			if err := a.free(ctx, leaving); err != nil || a.elsewhere.Load() {
				return err
			}
			return a.closeAndMark(ctx, entering)
		},
		func() error { return a.applyToMachines(ctx, p) },
	}, func(do func() error) error { return do() })
	a.announceMoves(p.Moves)
	return a.elsewhere.Load(), err
}

// applyToMachines carries out a plan, except for Nodes.
func (a *application) applyToMachines(ctx context.Context, p plan.Plan) error {
	for _, write := range []func() error{
		func() error { return a.changeDeployment(ctx, p) },
		func() error { return a.claimSets(ctx, p.SetClaims) },
		func() error { return a.claim(ctx, p.Claims) },
		func() error { return a.changeSets(ctx, p.Sets) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	first, status, setErr := a.createSets(ctx, p)
	changeErr := inParallel(p.Machines, func(m plan.MachineChange) error { return a.patchMachine(ctx, m.Before, m.After) })
	failures, createErr := a.create(ctx, append(p.Creations, first...))
	return errors.Join(
		setErr, changeErr, createErr, a.delete(ctx, p.Deletions), a.deleteSets(ctx, p.SetDeletions), a.changeNodes(ctx, p.Nodes),
		a.report(ctx, p.Statuses, failures), a.reportDeployment(ctx, status),
	)
}

// confirm reads a MachineSet, before machines are adopted, created or deleted for it, and returns a
// conflict if it is not as it was looked at, or its MachineDeployment is not: a store may be late.
func (a *application) confirm(ctx context.Context, set *mcm.MachineSet) error {
	if err := a.confirmDeployment(ctx); err != nil || a.confirmed[set.UID] {
		return err
	}
	live, err := a.client.MachineSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return conflictError("machinesets", set.Name, "it no longer exists")
	case err != nil:
		return fmt.Errorf("read machine set %s: %w", set.Name, err)
	}
	if a.writtenSets.Record(live); live.UID != set.UID || live.ResourceVersion != a.current[set.UID].ResourceVersion {
		return conflictError("machinesets", set.Name, "it has changed since the decision")
	}
	a.confirmed[set.UID] = true
	return nil
}

// claim adopts and releases machines.
func (a *application) claim(ctx context.Context, claims []plan.Claim) error {
	for _, one := range claims {
		if one.Adopt {
			if err := a.confirm(ctx, one.Set); err != nil {
				return err
			}
		}
	}
	return inParallel(claims, func(one plan.Claim) error { return a.patchMachine(ctx, one.Machine, claimedMachine(one)) })
}

// claimedMachine returns a machine that is adopted or released.
func claimedMachine(one plan.Claim) *mcm.Machine {
	after := one.Machine.DeepCopy()
	after.OwnerReferences = claimed(after.OwnerReferences, one.Set, setKind, one.Adopt)
	return after
}

// claimed returns the owners of an object that is adopted or released.
func claimed(owners []metav1.OwnerReference, by metav1.Object, of kind, adopt bool) []metav1.OwnerReference {
	owners = slices.DeleteFunc(owners, func(r metav1.OwnerReference) bool { return r.UID == by.GetUID() })
	if adopt {
		owners = append(owners, *metav1.NewControllerRef(by, mcm.SchemeGroupVersion.WithKind(string(of))))
	}
	return owners
}

// report writes statuses. Where machines could not be created, the status says so.
func (a *application) report(ctx context.Context, changes []plan.StatusChange, failures map[types.UID]plan.Failure) error {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c plan.StatusChange) bool { _, failed := failures[c.Set.UID]; return failed })
	for _, s := range a.view.Sets {
		if f, failed := failures[s.Object.UID]; failed {
			if change, differs := a.view.WithFailure(s, f); differs {
				changes = append(changes, change)
			}
		}
	}
	var errs []error
	for _, change := range changes {
		before := a.current[change.Set.UID]
		err := a.patchSet(ctx, before, reportedSet(before, change), "status")
		if errs = append(errs, err); err == nil {
			a.recordEvents(change.Events)
		}
	}
	return errors.Join(errs...)
}

// isInDoubt reports whether an object has to be read after a write: it may have taken effect, or the store is
// late.
func isInDoubt(err error) bool {
	result := written.Outcome(err)
	return result == written.Unknown || result == written.Conflict
}

// reportedSet returns a MachineSet with a new status. Its spec may have been changed by the same plan.
func reportedSet(before *mcm.MachineSet, change plan.StatusChange) *mcm.MachineSet {
	after := before.DeepCopy()
	after.Status = change.After
	if change.After.ObservedGeneration == change.Set.Generation {
		after.Status.ObservedGeneration = before.Generation
	}
	return after
}

// patchSet writes what differs between two versions of a MachineSet.
func (a *application) patchSet(ctx context.Context, before, after *mcm.MachineSet, subresource ...string) error {
	patch := mergePatch(before, after)
	if patch == nil {
		return nil
	}
	answer, err := a.client.MachineSets(before.Namespace).Patch(ctx, before.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresource...)
	if err != nil {
		if isInDoubt(err) {
			a.memory.noteUnsure(before.UID)
		}
		return written.IgnoreNotFound(fmt.Errorf("write machine set %s: %w", before.Name, err))
	}
	a.writtenSets.Record(answer)
	a.current[before.UID], a.confirmed[before.UID] = answer, true
	klog.FromContext(ctx).V(2).Info("Wrote machine set", "machineSet", before.Name, "patch", string(patch))
	return nil
}

// patchMachine writes what differs between two versions of a Machine, except for its status. If it may have
// been written, or was another version, the machine is read before the next decision.
func (a *application) patchMachine(ctx context.Context, before, after *mcm.Machine) error {
	patch := mergePatch(before, after)
	if patch == nil {
		return nil
	}
	answer, err := a.client.Machines(before.Namespace).Patch(ctx, before.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	a.countWrite("machine", before.ResourceVersion, answer, err)
	if err != nil {
		if owner := metav1.GetControllerOfNoCopy(before); owner != nil && isInDoubt(err) {
			a.memory.noteDoubt(owner.UID, before)
		}
		return written.IgnoreNotFound(fmt.Errorf("write machine %s: %w", before.Name, err))
	}
	a.writtenMachines.Record(answer)
	a.mu.Lock()
	a.machinesWritten[answer.Name] = answer
	a.mu.Unlock()
	klog.FromContext(ctx).V(2).Info("Wrote machine", "machine", before.Name, "patch", string(patch))
	return nil
}

// mergePatch returns a merge patch on the version that was looked at, nil if nothing differs. It names
// only what differs, so fields that this program does not know stay.
func mergePatch[T metav1.Object](before, after T) []byte {
	patch, err := jsonpatch.CreateMergePatch(encode(before), encode(after))
	if err != nil {
		panic(fmt.Sprintf("compare %s: %v", before.GetName(), err)) // both are valid JSON
	}
	tree := map[string]any{}
	if err := json.Unmarshal(patch, &tree); err != nil {
		panic(fmt.Sprintf("decode patch of %s: %v", before.GetName(), err)) // it has just been encoded
	}
	if len(tree) == 0 {
		return nil
	}
	metadata, _ := tree["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		tree["metadata"] = metadata
	}
	metadata["resourceVersion"], metadata["uid"] = before.GetResourceVersion(), before.GetUID()
	return encode(tree)
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode: %v", err)) // API types and what is made of them always encode
	}
	return text
}

// inParallel does something with all items, some at a time.
func inParallel[T any](items []T, do func(T) error) error {
	errs, panics := make([]error, len(items)), make([]any, len(items))
	var running sync.WaitGroup
	turns := make(chan struct{}, maxParallel)
	for i, item := range items {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { panics[i] = recover(); <-turns }()
			errs[i] = do(item)
		})
	}
	running.Wait()
	for _, value := range panics {
		if value != nil {
			panic(value) // where it is caught, for this key alone
		}
	}
	return errors.Join(errs...)
}

func conflictError(resource, name, format string, args ...any) error {
	return apierrors.NewConflict(machine.Resource(resource), name, fmt.Errorf(format, args...))
}
