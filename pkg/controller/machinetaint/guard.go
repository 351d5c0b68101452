// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// doubted is how long a write of unknown outcome counts as under way: longer than any request lasts.
const doubted = 2 * time.Minute

// shrink is a write by which a MachineSet asks for fewer machines, until the store shows it.
type shrink struct {
	replicas int
	version  string    // that it was written with; empty while it is under way
	until    time.Time // when it is forgotten if its outcome never shows; zero while it is under way
}

// removal is the deletion of a Machine that was let through, until the store shows it.
type removal struct {
	until time.Time // when it is forgotten if its outcome never shows; zero unless that is unknown
}

// Guards refuse what machine-controller-manager decided before the excess applied grew to what it is: it goes on from what it looked up,
// and would take as many machines as the excess had fallen by, when those that were to go are victims no longer.
func (c *Controller) Guards() view.Guards {
	return view.Guards{Shrink: c.guardShrink, Remove: c.guardRemove}
}

// guardShrink lets a MachineSet shrink only by decision on the excess that is applied now.
func (c *Controller) guardShrink(after *mcm.MachineSet) (func(*mcm.MachineSet, error), error) {
	nothing := func(*mcm.MachineSet, error) {}
	id := setID(after)
	key, owned := keyOfSet(after)
	before, found := find[*mcm.MachineSet](c.stores.seenSets, id)
	if !owned || found && after.Spec.Replicas >= before.Spec.Replicas {
		return nothing, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.newestLocked(key); d != nil && applied(d).Excess > 0 {
		total, known := stock.GetDesiredReplicasAnnotation(after)
		if shown := pool.VisibleReplicas(replicas(d), pool.AppliedOf(d)); known && int(total) < shown {
			return nil, stale("machinesets", after.Name, "decided for %d machines in all, %d are wanted now", total, shown)
		}
	}
	c.shrinks[id] = &shrink{replicas: int(after.Spec.Replicas)}
	return func(result *mcm.MachineSet, err error) { c.shrunk(id, result, err) }, nil
}

// shrunk notes the outcome of a write that a MachineSet shrinks by.
func (c *Controller) shrunk(id string, result *mcm.MachineSet, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shrinks[id]
	switch {
	case s == nil:
	case err == nil:
		s.version = result.ResourceVersion
	case ineffective(err):
		delete(c.shrinks, id)
	default:
		s.until = c.clock.Now().Add(doubted)
	}
}

// wanted is how many machines a MachineSet asks for, by what machine-controller-manager's store shows and what is under way.
func (c *Controller) wanted(set *mcm.MachineSet) int {
	id := setID(set)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shrinks[id]
	if s == nil {
		return int(set.Spec.Replicas)
	}
	if s.version != "" && reached(set.ResourceVersion, s.version) || !s.until.IsZero() && c.clock.Now().After(s.until) {
		delete(c.shrinks, id)
		return int(set.Spec.Replicas)
	}
	return min(s.replicas, int(set.Spec.Replicas))
}

// guardRemove lets a Machine go only while its MachineSet has more than it asks for, unless it goes by itself. It
// goes at the version that was seen: a request may wait for seconds, and meanwhile the machine may leave the reserve and get pods.
func (c *Controller) guardRemove(namespace, name string) (version string, ended func(error), err error) {
	nothing := func(error) {}
	m, found := find[*mcm.Machine](c.stores.seenMachines, namespace+"/"+name)
	if !found {
		return "", nothing, nil
	}
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil {
		return "", nothing, nil
	}
	set, found := find[*mcm.MachineSet](c.stores.seenSets, namespace+"/"+owner.Name)
	if !found || set.DeletionTimestamp != nil {
		return "", nothing, nil
	}
	key, found := keyOfSet(set)
	if !found {
		return "", nothing, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.newestLocked(key)
	if d == nil || d.DeletionTimestamp != nil || goesAnyway(m, signs.Named(d)) {
		return "", nothing, nil
	}
	present, reserve := c.staying(set, m.UID)
	ours := applied(d).Excess > 0 || c.wasMarked(m)
	switch {
	case ours && present <= int(set.Spec.Replicas):
		return "", nil, stale("machines", name, "there are %d machines and %d are wanted now", present, set.Spec.Replicas)
	case ours:
	case reserve == 0 || set.Spec.Replicas == 0:
		return "", nothing, nil
	default:
		// The annotation was lost, with all others: a whole object was written without them.
		return "", nil, stale("machines", name, "%d machines are still in reserve and go first", reserve)
	}
	c.removals[m.UID] = &removal{}
	return m.ResourceVersion, func(err error) { c.removed(m.UID, err) }, nil
}

// removed notes the outcome of a deletion. One that was answered is not in the store yet.
func (c *Controller) removed(machine types.UID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.removals[machine]
	switch {
	case r == nil || written.Answered(err):
	case ineffective(err):
		delete(c.removals, machine)
	default:
		r.until = c.clock.Now().Add(doubted)
	}
}

// isRemoved reports whether a machine goes, or may, though the store does not show it. It is called with the lock held.
func (c *Controller) isRemoved(machine types.UID) bool {
	r := c.removals[machine]
	if r != nil && !r.until.IsZero() && c.clock.Now().After(r.until) {
		delete(c.removals, machine)
		return false
	}
	return r != nil
}

// seenMachineChanged forgets removals that the store shows.
func (c *Controller) seenMachineChanged(was, is any) {
	if m, ok := cmp.Or(is, was).(*mcm.Machine); ok && (is == nil || pool.Going(m)) {
		c.mu.Lock()
		delete(c.removals, m.UID)
		c.mu.Unlock()
	}
	c.machineChanged(was, is)
}

// seenSetChanged forgets the shrinks of MachineSets that are gone.
func (c *Controller) seenSetChanged(was, is any) {
	if set, ok := was.(*mcm.MachineSet); ok && is == nil {
		c.mu.Lock()
		delete(c.shrinks, setID(set))
		c.mu.Unlock()
	}
	c.setChanged(was, is)
}

// staying counts the machines of a MachineSet that are not going, and those in reserve among them. The one that is asked for stays
// so far, also when it is asked for again. It is called with the lock held.
func (c *Controller) staying(set *mcm.MachineSet, asked types.UID) (present, reserve int) {
	for _, other := range owned[*mcm.Machine](c.stores.seenMachines, set) {
		if pool.Going(other) || other.UID != asked && c.isRemoved(other.UID) {
			continue
		}
		present++
		if c.isMarked(other) {
			reserve++
		}
	}
	return present, reserve
}

// isMarked looks at the Machine as it is: the one that machine-controller-manager sees lacks its mark.
func (c *Controller) isMarked(shown *mcm.Machine) bool {
	m, found := find[*mcm.Machine](c.stores.machines, shown.Namespace+"/"+shown.Name)
	return found && pool.Marked(m)
}

// wasMarked reports whether a Machine is in reserve, or was.
func (c *Controller) wasMarked(shown *mcm.Machine) bool {
	m, found := find[*mcm.Machine](c.stores.machines, shown.Namespace+"/"+shown.Name)
	return found && (pool.Marked(m) || m.Annotations[v1alpha1.ReserveStateAnnotation] != "")
}

// InReserve reports whether a Machine that machine-controller-manager sees is in reserve.
func (c *Controller) InReserve(shown *mcm.Machine) bool { return c.isMarked(shown) }

// goesAnyway says that a machine goes however many are wanted: it has failed, or was named.
func goesAnyway(m *mcm.Machine, named map[string]time.Time) bool {
	_, isNamed := named[m.Name]
	return isNamed || m.Status.CurrentStatus.Phase == mcm.MachineFailed || pool.Going(m) || signs.Priority(m) == 1
}

func stale(resource, name, format string, args ...any) error {
	return apierrors.NewConflict(mcm.Resource(resource), name, fmt.Errorf(format, args...))
}

// ineffective reports whether a write is known to have changed nothing. A conflict is an answer here: a guard hears of each attempt.
func ineffective(err error) bool {
	result := written.Outcome(err)
	return result == written.Refused || result == written.Conflict
}

func setID(set *mcm.MachineSet) string { return set.Namespace + "/" + set.Name }
