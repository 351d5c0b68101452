// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machinepool "github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// Change is one patch of a MachineDeployment. Errors of the functions that make one are answers to a call.
type Change struct {
	// From and To are replicas before and after.
	From, To int32
	// Names are machines that are newly named for deletion.
	Names []string
	// Annotations are set.
	Annotations map[string]string
	// meant is by how many replicas the caller believes the group to differ then from what it was.
	meant int32
}

// Empty says that there is nothing to write.
func (c Change) Empty() bool { return c.From == c.To && len(c.Annotations) == 0 }

// NewRaise gives a group so many machines more than the caller has seen when its loop began. What others have raised since is a part of it: they
// look at the same pods.
func NewRaise(g Group, seen, delta int32) (Change, error) {
	replicas := g.Replicas()
	if delta <= 0 {
		return Change{}, status.Errorf(codes.InvalidArgument, "raise %s by %d: must be 1 or more", g.Deployment.Name, delta)
	}
	to := int64(min(seen, replicas)) + int64(delta)
	switch {
	case to <= int64(replicas):
		return Change{From: replicas, To: replicas, meant: delta}, nil
	case to > int64(g.Bounds.Max):
		return Change{}, status.Errorf(codes.OutOfRange, "raise %s from %d to %d: max is %d", g.Deployment.Name, replicas, to, g.Bounds.Max)
	}
	c := resized(g, int32(to))
	c.meant = delta
	return c, nil
}

// NewRemoval names machines of a group for deletion. Those that leave already, or are no members any more, change nothing.
func NewRemoval(g Group, members []Member, going map[string]bool, now time.Time) (Change, error) {
	var leave []Member
	serving := int32(0)
	for _, m := range members {
		if !going[m.Name] || m.Leaving {
			continue
		}
		if m.Preserved {
			return Change{}, status.Errorf(codes.FailedPrecondition, "remove machine %s: it is preserved", m.Name)
		}
		if leave = append(leave, m); m.Serves() {
			serving++
		}
	}
	replicas := g.Replicas()
	switch {
	case len(leave) == 0:
		return Change{From: replicas, To: replicas}, nil
	case spread(members):
		// machine-controller-manager would spread the smaller number over its MachineSets, and so delete a machine that nobody named. In an
		// in-place update it would neither take one away nor go on with the update.
		return Change{}, status.Errorf(codes.FailedPrecondition, "remove machines of %s: its machines are being replaced, by a rollout", g.Deployment.Name)
	case serving > 0 && replicas-serving < g.Bounds.Min:
		return Change{}, status.Errorf(codes.FailedPrecondition, "remove %d machines of %s, which has %d: min is %d", serving, g.Deployment.Name, replicas, g.Bounds.Min)
	}
	c := resized(g, replicas-serving)
	c.name(g, leave, now)
	return c, nil
}

// spread reports whether machines that stay belong to more than one MachineSet.
func spread(members []Member) bool {
	staying := map[string]int{}
	for _, m := range members {
		if !m.Leaving {
			staying[m.Set]++
		}
	}
	return machinepool.Spread(nil, staying)
}

// NewWithdrawal takes back what does not exist yet of the machines that were asked for. It never fails: the caller would
// fail with it, for all groups, again and again.
func NewWithdrawal(g Group, members []Member, delta int32) Change {
	replicas := int64(g.Replicas())
	counted, serving := int64(0), int64(0)
	for _, m := range members {
		if m.Counted {
			counted++
		}
		if m.Serves() {
			serving++
		}
	}
	// The first keeps a placeholder from being withdrawn here and deleted later. The second leaves machine-controller-manager
	// no machine too many: it would take one that serves.
	missing := min(replicas-serving, replicas+g.applied()-counted)
	back := max(0, min(-int64(delta), missing, replicas-int64(g.Bounds.Min)))
	return resized(g, int32(replicas-back))
}

// resized is a change of replicas.
func resized(g Group, to int32) Change {
	c := Change{From: g.Replicas(), To: to, Annotations: map[string]string{}, meant: to - g.Replicas()}
	d := g.Deployment
	_, held := d.Annotations[v1alpha1.AppliedReplicasAnnotation]
	if mode, _ := v1alpha1.ParseBalanceMode(d.Annotations[v1alpha1.BalanceAnnotation]); c.From == c.To || !held && mode == v1alpha1.BalanceOff {
		return c
	}
	// What the caller has chosen this group for is not split over others; what is being split already goes on being split.
	moved := min(max(0, int64(machinepool.Workload(d, c.From))+int64(to)-int64(c.From)), math.MaxInt32)
	c.Annotations[v1alpha1.AppliedReplicasAnnotation] = strconv.FormatInt(moved, 10)
	return c
}

// name adds machines to those that machine-controller-manager is to delete.
func (c *Change) name(g Group, leave []Member, now time.Time) {
	for _, m := range leave {
		c.Names = append(c.Names, m.Name)
	}
	slices.Sort(c.Names)
	maps.Copy(c.Annotations, signs.Name(g.Deployment, c.Names, g.shown(c.To) < g.shown(c.From), now))
}

// NewReminder writes the time of the change where machines are overdue that were named before it: somebody has raised replicas
// since, so that there are none too many.
func NewReminder(g Group, machines map[string]bool, now time.Time) Change {
	c := Change{From: g.Replicas(), To: g.Replicas()}
	c.Annotations, _ = signs.Remind(g.Deployment, func(name string) bool { return machines[name] }, now)
	return c
}
