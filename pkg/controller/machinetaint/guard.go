// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// guards refuse what machine-controller-manager decided before the applied excess grew: it would
// delete as many machines as the excess had been reduced by, although those that were to be deleted
// are victims no longer. They remember the writes that they allow until the stores show these.
type guards struct {
	latest *latest
	states *states
	clock  clock.PassiveClock
	// syncAfter syncs a MachineDeployment after a time.
	syncAfter func(key string, after time.Duration)
}

// Guards returns what decides whether machine-controller-manager may resize MachineSets, delete
// Machines, and remove their names from MachineDeployments.
func (c *Controller) Guards() view.Guards {
	return view.Guards{Shrink: c.guards.resize, Remove: c.guards.remove, Unname: c.guards.unname}
}

func (g *guards) decide(key string, f func(decision) error) (err error) {
	g.states.locked(key, func(s *state) {
		err = f(decision{latest: g.latest, key: key, deployment: g.latest.Deployment(key), memory: s.lastMemory(), state: s, now: g.clock.Now()})
	})
	return err
}

// resize allows a change of a MachineSet's replicas only if it was decided for the present applied
// excess.
func (g *guards) resize(after *mcm.MachineSet) (ended func(*mcm.MachineSet, error), err error) {
	set := keyOf(after)
	key, owned := keyOfSet(after)
	before := stores.Find[mcm.MachineSet](g.latest.stores.seenSets, set)
	if !owned || before != nil && after.Spec.Replicas == before.Spec.Replicas {
		return func(*mcm.MachineSet, error) {}, nil
	}
	err = g.decide(key, func(d decision) error {
		if err := d.resizeConflict(before, after); err != nil {
			return err
		}
		d.state.beginResize(set, int(after.Spec.Replicas))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(result *mcm.MachineSet, err error) {
		g.states.locked(key, func(s *state) {
			if s.endResize(set, result, err, g.clock.Now()) {
				g.syncAfter(key, unknownFor+time.Second)
			}
		})
	}, nil
}

// remove allows the deletion of a Machine only while its MachineSet has more machines than it asks
// for, unless the machine is to be deleted anyway. The deletion is limited to the version that was
// seen: a request may wait for seconds, and meanwhile the machine may leave the reserve and get
// pods.
func (g *guards) remove(namespace, name string) (version string, ended func(error), err error) {
	nothing := func(error) {}
	m, set, key := g.latest.seenMachine(namespace + "/" + name)
	if set == nil || set.DeletionTimestamp != nil {
		return "", nothing, nil
	}
	guarded := false
	err = g.decide(key, func(d decision) error {
		ours, err := d.removalConflict(set, m)
		if guarded = ours && err == nil; guarded {
			d.state.beginRemoval(m.UID)
		}
		return err
	})
	switch {
	case err != nil:
		return "", nil, err
	case !guarded:
		return "", nothing, nil
	}
	return m.ResourceVersion, func(err error) {
		g.states.locked(key, func(s *state) { s.endRemoval(m.UID, err, g.clock.Now()) })
	}, nil
}

// reduce begins a reduction to this number of machines, unless the MachineSets ask for more than
// when it was decided. From then on, none of them grows because of an earlier decision. The
// function that it returns is called with the outcome.
func (g *guards) reduce(d *v1alpha1.MachineDeployment, shown, asked int) (ended func(error), err error) {
	key := keyOf(d)
	g.states.locked(key, func(s *state) {
		if _, most := s.totalReplicas(g.latest.seenSets(d), g.clock.Now()); most > asked {
			err = conflictError("machinedeployments", d.Name, "its machine sets ask for %d machines by now", most)
			return
		}
		s.beginReduction(shown)
	})
	if err != nil {
		return nil, err
	}
	return func(err error) {
		g.states.locked(key, func(s *state) {
			if s.endReduction(err, g.clock.Now()) {
				g.syncAfter(key, unknownFor+time.Second)
			}
		})
	}, nil
}

// release keeps a Machine of a MachineDeployment from being deleted until the release has been
// written.
func (g *guards) release(key string, machine types.UID) (ended func()) {
	g.states.locked(key, func(s *state) { s.beginRelease(machine) })
	return func() { g.states.locked(key, func(s *state) { delete(s.releases, machine) }) }
}

// mayBeRemoved reports whether a deletion of the Machine may be in progress, including one of an
// earlier process.
func (g *guards) mayBeRemoved(key string, m *mcm.Machine) (may bool) {
	g.states.locked(key, func(s *state) {
		may = pool.Priority(m) <= reserve.PriorityVictim || s.isRemoved(m.UID, g.clock.Now())
	})
	return may
}

// seenMachineChanged forgets removals that the store shows.
func (c *Controller) seenMachineChanged(was, is any) {
	if m, ok := cmp.Or(is, was).(*mcm.Machine); ok && (is == nil || pool.BeingDeleted(m)) {
		c.states.forgetRemoval(m.UID)
	}
	c.machineChanged(was, is)
}

// seenSetChanged forgets the resizes of MachineSets that no longer exist.
func (c *Controller) seenSetChanged(was, is any) {
	if set, ok := was.(*mcm.MachineSet); ok && is == nil {
		if key, owned := keyOfSet(set); owned {
			c.states.locked(key, func(s *state) { delete(s.resizes, keyOf(set)) })
		}
	}
	c.setChanged(was, is)
}

// InReserve reports whether a Machine that machine-controller-manager sees is in reserve.
func (c *Controller) InReserve(shown *mcm.Machine) bool { return c.latest.isMarked(shown) }

// ineffective reports whether a write is known to have changed nothing. A conflict counts, since
// guards are called for each attempt.
func ineffective(err error) bool {
	result := written.Outcome(err)
	return result == written.Refused || result == written.Conflict
}
