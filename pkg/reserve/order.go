// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

// earlier orders machines as machine-controller-manager deletes them, as far as nothing can change that before it
// does: 0 is a tie that may fall either way. It also compares phases, but a machine that boots may run a moment
// later; and then ages, in seconds.
func earlier(a, b Machine) int {
	return cmp.Or(
		compareFalseFirst(a.Preserved, b.Preserved),
		cmp.Compare(a.SeenPriority, b.SeenPriority),
		compareFalseFirst(!a.Named, !b.Named),
		cmp.Compare(lasting(a), lasting(b)),
	)
}

// lasting ranks the phases that no machine leaves within seconds: Failed goes before CrashLoopBackOff, and both before
// all others.
func lasting(m Machine) int {
	switch {
	case m.Phase == mcm.MachineFailed:
		return 1
	case m.Phase == mcm.MachineCrashLoopBackOff && m.Failing && !m.Made:
		return 2
	}
	return 3
}

// expendable is how many machines machine-controller-manager could delete from each of its sets, by its own order and
// with ties falling badly, before it came to one that the plan does not want to lose.
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
			return cmp.Or(earlier(r.machines[i], r.machines[j]), compareFalseFirst(r.mayGo(i), r.mayGo(j)))
		})
		if n := slices.IndexFunc(set, func(i int) bool { return !r.mayGo(i) }); n >= 0 {
			least = min(least, n)
		}
	}
	return least
}

// mayGo says of machine i that it is no loss, and that the lens' store knows.
func (r *round) mayGo(i int) bool {
	m := r.machines[i]
	switch {
	case m.Leaving():
		return true
	case lasting(m) == 2 && !m.Busy():
		// It cannot be given a priority, and does not need one.
		return true
	case r.Blind:
		return false
	}
	if r.Rollout && m.Reserve && m.SeenPriority == PriorityReserve {
		// The last of an old set: nothing that serves is left there, else it would come first.
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
