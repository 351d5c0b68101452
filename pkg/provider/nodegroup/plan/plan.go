// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a call of cluster-autoscaler changes. From a [Group], its members and
// the request, [NewRaise], [NewRemoval] and [NewWithdrawal] make one [Change] of the
// MachineDeployment, or refuse it with a gRPC code; [NewReminder] repeats deletions. If the answer
// to a change was lost, [Change.ResolveOutcome] decides whether it took effect, and [NewTemplate]
// decides what a new Node of a group is like. The package is pure, and its laws are those of
// package nodegroup.
package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Change is one patch of a MachineDeployment. The functions that return one return errors with gRPC
// codes.
type Change struct {
	// From and To are the target size before and after, and Replicas is spec.replicas then: it may
	// include reserve machines.
	From, To, Replicas int32
	// Names are machines that are newly named for deletion.
	Names []string
	// Annotations are set.
	Annotations map[string]string
	// CallerDelta is by how many replicas the caller expects the group to have changed afterwards.
	CallerDelta int32
}

// IsEmpty reports whether there is nothing to write.
func (c Change) IsEmpty() bool { return c.From == c.To && len(c.Annotations) == 0 }

// NewRaise gives a group this number of machines more than the caller saw when its loop began. It
// includes what others have raised since, because they act on the same pods.
func NewRaise(g Group, seen, delta int32) (Change, error) {
	replicas := g.Replicas()
	if delta <= 0 {
		return Change{}, status.Errorf(codes.InvalidArgument, "raise %s by %d: must be 1 or more", g.Deployment.Name, delta)
	}
	to := int64(min(seen, replicas)) + int64(delta)
	switch {
	case to <= int64(replicas):
		return Change{From: replicas, To: replicas, CallerDelta: delta}, nil
	case to > int64(g.Max()):
		return Change{}, status.Errorf(codes.OutOfRange, "raise %s from %d to %d: max is %d", g.Deployment.Name, replicas, to, g.Max())
	}
	c := newChange(g, resized(g, int32(to), workload(g)+int32(to)-replicas))
	c.CallerDelta = delta
	return c, nil
}

// NewRemoval names machines of a group for deletion. Machines that are already leaving, or are no
// longer members, change nothing. Spread reports whether the machines belong to more than one
// MachineSet; see [pool.Rollout].
func NewRemoval(g Group, members []Member, spread bool, going map[string]bool, now time.Time) (Change, error) {
	var leave []string
	serving := int32(0)
	for _, m := range members {
		if !going[m.Name()] || m.Leaving() {
			continue
		}
		if m.Preserved {
			return Change{}, status.Errorf(codes.FailedPrecondition, "remove machine %s: it is preserved", m.Name())
		}
		if leave = append(leave, m.Name()); m.Serves() {
			serving++
		}
	}
	replicas := g.Replicas()
	switch {
	case len(leave) == 0:
		return Change{From: replicas, To: replicas}, nil
	case spread:
		// machine-controller-manager would spread the smaller number over its MachineSets, and delete
		// a machine that was not named. During an in-place update, it would neither delete a machine
		// nor continue the update.
		return Change{}, status.Errorf(codes.FailedPrecondition, "remove machines of %s: a rollout is in progress", g.Deployment.Name)
	case serving > 0 && replicas-serving < g.Bounds.Min:
		return Change{}, status.Errorf(codes.FailedPrecondition, "remove %d of the %[3]d machines of %[2]s: min is %[4]d", serving, g.Deployment.Name, replicas, g.Bounds.Min)
	}
	after := resized(g, replicas-serving, workload(g)-serving)
	c := newChange(g, after)
	fewer := pool.Visible(after) < pool.Visible(g.Deployment)
	c.Names = slices.Sorted(slices.Values(leave))
	maps.Copy(c.Annotations, pool.NameForDeletion(g.Deployment, c.Names, fewer, now))
	return c, nil
}

// NewWithdrawal withdraws requested machines that do not exist yet. It never fails: the caller
// would fail repeatedly, for all groups.
func NewWithdrawal(g Group, members []Member, delta int32) Change {
	counted, serving := 0, 0
	for _, m := range members {
		if m.Counted() {
			counted++
		}
		if m.Serves() {
			serving++
		}
	}
	replicas, r := int(g.Replicas()), int(workload(g))
	// The first condition prevents that a placeholder is withdrawn here and deleted later. The
	// second one leaves machine-controller-manager no excess machine: it would delete one that
	// serves. Growth that is still to be split has no machines.
	missing := max(0, min(r-serving, pool.Visible(g.Deployment)-counted))
	back := max(0, min(-int(delta), missing+replicas-r, replicas-int(g.Bounds.Min)))
	return newChange(g, resized(g, int32(replicas-back), int32(r-min(back, missing))))
}

// workload returns how many machines the group may have for workload now.
func workload(g Group) int32 { return max(0, pool.Workload(g.Deployment, g.Deployment.Spec.Replicas)) }

// resized returns the MachineDeployment with these replicas, r of them for workload at once.
func resized(g Group, replicas, r int32) *v1alpha1.MachineDeployment {
	after := *g.Deployment
	r = min(max(0, r), replicas)
	pool.Resize(&after, r, replicas-r)
	return &after
}

// newChange returns the change from a group to its next state.
func newChange(g Group, after *v1alpha1.MachineDeployment) Change {
	c := Change{From: g.Replicas(), To: pool.Requested(after), Replicas: after.Spec.Replicas, Annotations: map[string]string{}}
	c.CallerDelta = c.To - c.From
	if _, held := pool.AppliedReplicas(after); held && c.From != c.To {
		c.Annotations[v1alpha1.AppliedReplicasAnnotation] = after.Annotations[v1alpha1.AppliedReplicasAnnotation]
	}
	if text := after.Annotations[v1alpha1.AppliedExcessAnnotation]; text != g.Deployment.Annotations[v1alpha1.AppliedExcessAnnotation] {
		c.Annotations[v1alpha1.AppliedExcessAnnotation] = text
	}
	return c
}

// NewReminder updates the time of the change if machines that were named before it are overdue:
// replicas have been raised since, so that none are in excess.
func NewReminder(g Group, machines map[string]bool, now time.Time) Change {
	c := Change{From: g.Replicas(), To: g.Replicas()}
	c.Annotations, _ = pool.Remind(g.Deployment, func(name string) bool { return machines[name] }, now)
	return c
}

// changedAt is the annotation with the time when an autoscaler last changed replicas.
const changedAt = machineutils.LastDeploymentReplicaChangeByScalerTime

// ResolveOutcome determines the outcome of a patch from the stored object, which is no longer the
// version that it was decided on: either it took effect, or it never will and may be decided again.
// Lost reports whether an answer to it was lost; otherwise, a conflict means that it did not take
// effect.
//
// Each write of the spec increments the generation by one. If it has not changed, our write did not
// take effect. If it is one higher, our write took effect if the object shows it. If it is higher
// still and the object shows something else, the outcome is unknown, and trying again could change
// the group twice.
func (c Change) ResolveOutcome(base, live *v1alpha1.MachineDeployment, lost bool) (done bool, err error) {
	switch {
	case !lost, live.UID != base.UID:
		return false, nil
	case c.From != c.To && c.Replicas == base.Spec.Replicas:
		// Workload takes reserve machines that replicas include. Where that is not stored, it is
		// decided anew: on what the caller has seen.
		return live.Annotations[v1alpha1.AppliedExcessAnnotation] == c.Annotations[v1alpha1.AppliedExcessAnnotation], nil
	case c.From == c.To, live.Generation == base.Generation:
		return false, nil // names that have arrived are seen when deciding anew
	case live.Spec.Replicas == c.Replicas && c.arrived(base, live):
		return true, nil
	case live.Generation == base.Generation+1 && (live.Spec.Replicas != c.Replicas || c.identifiable(base)):
		return false, nil
	}
	return false, status.Errorf(codes.Aborted, "change %s: write outcome unknown and the object has changed since; re-read the target size", base.Name)
}

// arrived reports whether the stored object names our machines, or did. If we name none, it must
// have the target size: the same number of replicas may include more reserve machines.
func (c Change) arrived(base, live *v1alpha1.MachineDeployment) bool {
	if len(c.Names) == 0 {
		return pool.Requested(live) == c.To
	}
	there := pool.Named(live)
	missing := slices.ContainsFunc(c.Names, func(name string) bool { _, is := there[name]; return !is })
	return !missing || c.identifiable(base) && live.Annotations[changedAt] == c.Annotations[changedAt]
}

// identifiable reports whether the change writes a time that the object does not have yet, which
// proves our write later: machine-controller-manager removes names as soon as their machines
// terminate.
func (c Change) identifiable(base *v1alpha1.MachineDeployment) bool {
	at, ours := c.Annotations[changedAt]
	return ours && base.Annotations[changedAt] != at
}
