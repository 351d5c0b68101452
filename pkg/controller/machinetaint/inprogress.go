// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// unknownFor is how long a write of unknown outcome counts as in progress: longer than any request
// lasts.
const unknownFor = 2 * time.Minute

// resize is a write of the replicas of a MachineSet, until the store shows it.
type resize struct {
	least, most int       // that the set asks for if it took effect, or an earlier one that is in doubt
	version     string    // that it was written with; empty while it is under way
	until       time.Time // when it is forgotten if its outcome never shows; zero while it is under way
}

// removal is the deletion of a Machine that a guard allowed, until the store shows it.
type removal struct {
	until time.Time // when it is forgotten if its outcome never shows; zero unless that is unknown
}

// reduction is a write after which a MachineDeployment shows fewer machines. It is remembered for a
// while, because machine-controller-manager may have read the MachineDeployment long before it
// resizes a MachineSet.
type reduction struct {
	shown int
	until time.Time // when it is forgotten; zero while it is under way
}

// beginResize records a write of a MachineSet's replicas. The caller holds the lock.
func (c *Controller) beginResize(id string, replicas int) {
	r := &resize{least: replicas, most: replicas}
	if before := c.resizes[id]; before != nil && before.version == "" {
		r.least, r.most = min(r.least, before.least), max(r.most, before.most)
	}
	c.resizes[id] = r
}

// endResize records the outcome of a write of a MachineSet's replicas.
func (c *Controller) endResize(id string, result *mcm.MachineSet, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.resizes[id]
	switch {
	case r == nil:
	case err == nil:
		r.version = result.ResourceVersion
	case ineffective(err):
		delete(c.resizes, id)
	default:
		r.until = c.clock.Now().Add(unknownFor)
	}
}

// replicasOf returns the fewest and the most machines that a MachineSet may be asking for, by what
// machine-controller-manager's store shows and by the writes in progress. The caller holds the
// lock.
func (c *Controller) replicasOf(set *mcm.MachineSet) (least, most int) {
	id, shown := setKey(set), int(set.Spec.Replicas)
	r := c.resizes[id]
	if r == nil {
		return shown, shown
	}
	if r.version != "" && written.Reached(set.ResourceVersion, r.version) || c.passed(r.until) {
		delete(c.resizes, id)
		return shown, shown
	}
	return min(r.least, shown), max(r.most, shown)
}

// beginReduction begins a reduction to this number of machines, unless the MachineSets ask for more
// than when it was decided. From then on, none of them grows because of an earlier decision. The
// function that it returns is called with the outcome.
func (c *Controller) beginReduction(d *v1alpha1.MachineDeployment, shown, asked int) (ended func(error), err error) {
	key := d.Namespace + "/" + d.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	now := 0
	for _, set := range ownedBy[*mcm.MachineSet](c.stores.seenSets, d) {
		_, most := c.replicasOf(set)
		now += most
	}
	if now > asked {
		return nil, conflictError("machinedeployments", d.Name, "its machine sets ask for %d machines by now", now)
	}
	c.reductions[key] = &reduction{shown: shown}
	return func(err error) { c.endReduction(key, err) }, nil
}

func (c *Controller) endReduction(key string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ineffective(err) {
		delete(c.reductions, key)
		return
	}
	if r := c.reductions[key]; r != nil {
		r.until = c.clock.Now().Add(unknownFor)
		c.loop.AddAfter(key, unknownFor+time.Second)
	}
}

// forgetReduction removes the reduction of a MachineDeployment that no longer exists.
func (c *Controller) forgetReduction(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.reductions, key)
}

// reductionOf returns how many machines a MachineDeployment is to show, and whether that was
// reduced recently. The caller holds the lock.
func (c *Controller) reductionOf(key string, shown int) (int, bool) {
	r := c.reductions[key]
	switch {
	case r == nil:
		return shown, false
	case r.until.IsZero():
		return min(shown, r.shown), true
	case c.passed(r.until):
		delete(c.reductions, key)
		return shown, false
	}
	return shown, true
}

// passed reports whether a time is set and over.
func (c *Controller) passed(until time.Time) bool {
	return !until.IsZero() && c.clock.Now().After(until)
}

// beginRelease keeps a Machine from being deleted until the release has been written.
func (c *Controller) beginRelease(machine types.UID) (ended func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releases[machine] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.releases, machine)
	}
}

// endRemoval records the outcome of a deletion. The store does not show a successful one yet.
func (c *Controller) endRemoval(machine types.UID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.removals[machine]
	switch {
	case r == nil || written.Answered(err):
	case ineffective(err):
		delete(c.removals, machine)
	default:
		r.until = c.clock.Now().Add(unknownFor)
	}
}

// isRemoved reports whether a machine is being deleted, or may be, although the store does not show
// it. The caller holds the lock.
func (c *Controller) isRemoved(machine types.UID) bool {
	r := c.removals[machine]
	if r != nil && c.passed(r.until) {
		delete(c.removals, machine)
		return false
	}
	return r != nil
}

// seenMachineChanged forgets removals that the store shows.
func (c *Controller) seenMachineChanged(was, is any) {
	if m, ok := cmp.Or(is, was).(*mcm.Machine); ok && (is == nil || pool.BeingDeleted(m)) {
		c.mu.Lock()
		delete(c.removals, m.UID)
		c.mu.Unlock()
	}
	c.machineChanged(was, is)
}

// seenSetChanged forgets the resizes of MachineSets that no longer exist.
func (c *Controller) seenSetChanged(was, is any) {
	if set, ok := was.(*mcm.MachineSet); ok && is == nil {
		c.mu.Lock()
		delete(c.resizes, setKey(set))
		c.mu.Unlock()
	}
	c.setChanged(was, is)
}

// ineffective reports whether a write is known to have changed nothing. A conflict counts, since
// guards are called for each attempt.
func ineffective(err error) bool {
	result := written.Outcome(err)
	return result == written.Refused || result == written.Conflict
}
