// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// deletionOrder orders machines as machine-controller-manager deletes them, as far as nothing can
// change that before it does. It returns 0 if the order is open: machine-controller-manager also
// compares phases, but a booting machine may run a moment later; and then ages, in seconds.
func (r *round) deletionOrder(i, j int) int {
	a, b := r.machines[i], r.machines[j]
	return cmp.Or(
		compareFalseFirst(a.Preserved, b.Preserved),
		cmp.Compare(r.worstPriority(i), r.worstPriority(j)),
		compareFalseFirst(!a.Named, !b.Named),
		cmp.Compare(r.phaseRank(i), r.phaseRank(j)),
	)
}

// worstPriority returns the priority by which machine i is deleted in the worst case: the lens' store
// may show the stored one of a machine that is to stay at any moment.
func (r *round) worstPriority(i int) int {
	m := r.machines[i]
	if r.victim[i] || r.mayDelete(i) {
		return m.SeenPriority
	}
	return min(m.Priority, m.SeenPriority)
}

// phaseRank ranks the phases that no machine leaves within seconds: Failed is deleted before
// CrashLoopBackOff, and both before all others. The phases of an in-place update are deleted before
// all of them, because machine-controller-manager does not rank these. In the worst case, only a
// machine that is to stay still has such a phase.
func (r *round) phaseRank(i int) int {
	switch m := r.machines[i]; {
	case pool.UpdatedInPlace(m.Phase) && !r.mayDelete(i):
		return 0
	case m.Phase == mcm.MachineFailed:
		return 1
	case m.neverMade():
		return 2
	}
	return 3
}

// neverMade reports whether a machine could not be created, so that it has no VM.
func (m Machine) neverMade() bool {
	return m.Phase == mcm.MachineCrashLoopBackOff && m.Failing && !m.HasProviderID
}

// expendable returns how many machines machine-controller-manager could delete from each of its
// sets, in its own order and in the worst case, before it deletes one that the plan wants to keep.
func (r *round) expendable() int {
	sets := map[string][]int{}
	for i, m := range r.machines {
		if m.Phase != mcm.MachineTerminating {
			sets[m.Set] = append(sets[m.Set], i)
		}
	}
	least := len(r.machines)
	for _, set := range sets {
		slices.SortFunc(set, func(i, j int) int {
			return cmp.Or(r.deletionOrder(i, j), compareFalseFirst(r.mayDelete(i), r.mayDelete(j)))
		})
		if n := slices.IndexFunc(set, func(i int) bool { return !r.mayDelete(i) }); n >= 0 {
			least = min(least, n)
		}
	}
	return least
}

// mayDelete reports whether machine i may be deleted, and the lens' store shows that.
func (r *round) mayDelete(i int) bool {
	m := r.machines[i]
	switch {
	case m.Leaving():
		return true
	case m.neverMade() && m.Reserve && !m.Busy():
		// It cannot get a priority, and does not need one. If it is created a moment later, another
		// machine may be deleted in its place, which is spared only if no more than R serve. One that
		// serves may also get pods by then.
		return !r.surplusServes
	case r.view.NodesUnknown, m.Open && !r.isStuck(m):
		return false
	}
	if r.view.Rollout && m.Reserve && m.SeenPriority == PriorityReserve {
		// The last machines of an old set: it has no serving machine left, which would be deleted
		// first.
		return true
	}
	return (m.Reserve || r.victim[i]) && m.SeenPriority <= PriorityVictim
}

func compareFalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
