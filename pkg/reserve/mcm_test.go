// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"cmp"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// manage is one pass of MCM's controllers: replicas, deletions in its order, then creations. It says whether anything
// happened.
func (w *world) manage() bool {
	if w.view.Rollout {
		return w.roll()
	}
	shown := pool.VisibleReplicas(w.view.Replicas, w.view.Applied)
	moved := w.view.SetReplicas != shown
	w.view.SetReplicas = shown
	present := w.present(func(Machine) bool { return true })
	for i, m := range present {
		if i < len(present)-shown || m.Named || m.Phase == mcm.MachineFailed && !m.Preserved {
			w.judge(m)
			w.remove(m)
			moved = true
		}
	}
	for range shown - len(present) {
		w.create()
		moved = true
	}
	return moved
}

// create makes a machine as MCM does behind the lens.
func (w *world) create() {
	serves := ServesOnCreation(w.view, 0)
	m := w.add(Machine{Reserve: !serves, Set: current, Priority: PriorityServing, SeenPriority: PriorityServing})
	w.note("%s born, serves %t", m.Name, serves)
}

// remove deletes a machine, and evicts what runs there.
func (w *world) remove(m *Machine) {
	w.note("%s deleted", m.Name)
	m.Phase, m.Deleted = mcm.MachineTerminating, true
	w.evicted += m.Pods
	w.waiting += m.Pods
}

// present lists what MCM counts of a kind, in the order in which it would delete.
func (w *world) present(kind func(Machine) bool) []*Machine {
	var present []*Machine
	for i := range w.view.Machines {
		if m := &w.view.Machines[i]; m.Phase != mcm.MachineTerminating && kind(*m) {
			present = append(present, m)
		}
	}
	slices.SortStableFunc(present, deletedFirst)
	return present
}

// judge holds invariant I3 against a deletion: no busy machine goes in favour of one in reserve, unless it is named,
// sick, beyond R, or the one in reserve may not go.
func (w *world) judge(m *Machine) {
	if !m.Busy() || m.Reserve || m.Named || m.Unhealthy() || m.Priority < PriorityVictim {
		return
	}
	var serving, spare int
	for _, other := range w.view.Machines {
		switch {
		case other.Deleted && other.Phase != mcm.MachineTerminating:
			// MCM goes on counting it, as one of those to stay: for some seconds, it is unknown how many are too many.
			return
		case other.Leaving() || other.Reserve && other.Preserved:
		case other.Unhealthy() && (other.Reserve || !other.Preserved):
			// A preserved one holds its place, here as in stock.
		case other.Reserve:
			spare++
		default:
			serving++
		}
	}
	w.check(serving > w.view.Replicas || spare == 0, "I3: busy %s is deleted", m.Name)
}

// deletedFirst is MCM's ActiveMachines.Less, written down a second time.
func deletedFirst(a, b *Machine) int {
	rank := func(m *Machine) []int64 {
		kept, named := int64(0), int64(1)
		if m.Preserved {
			kept = 1
		}
		if m.Named {
			named = 0
		}
		phases := []mcm.MachinePhase{mcm.MachineTerminating, mcm.MachineFailed, mcm.MachineCrashLoopBackOff,
			mcm.MachineUnknown, mcm.MachinePending, mcm.MachineAvailable, mcm.MachineRunning}
		return []int64{kept, int64(m.Priority), named, int64(max(0, slices.Index(phases, m.Phase))), m.Created.Unix()}
	}
	return cmp.Or(slices.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}
