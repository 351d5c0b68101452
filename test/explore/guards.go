// SPDX-License-Identifier: Apache-2.0

package explore

// Guard is a rule of the machine-taint controller for writes of machine-controller-manager.
type Guard int

// Guards that a search shows to be necessary, and other promises that it can break.
const (
	None Guard = iota
	// GuardRemove refuses deletions of machines that must stay.
	GuardRemove
	// GuardNeeded is its part about serving machines that are needed.
	GuardNeeded
	// GuardEmpty checks a machine's pods again once its Node is closed.
	GuardEmpty
	// GuardCreate refuses machines for which there is no room.
	GuardCreate
	// GuardVersion limits writes to the version that they were decided on.
	GuardVersion
	// RepairNodes gives Nodes the marks of their Machines.
	RepairNodes
	// KeepUnparsed keeps the reserve while its settings cannot be parsed.
	KeepUnparsed
	// KeepMemory remembers what a plan waits for.
	KeepMemory
	// RetireSurplus puts machines into the reserve only while more serve than workload needs.
	RetireSurplus
	// KeepBlocked remembers, in the status of a Reserve, where machines cannot be created.
	KeepBlocked
	// CountFromLoop counts what an autoscaler asks for from the replicas when its loop began.
	CountFromLoop
	// KeepLoop ends the loop of an autoscaler when the process restarts, which forgets those.
	KeepLoop
	// RecordTaken records what a MachineDeployment takes in the write that gives it the replicas.
	RecordTaken
	// ReadPods reads which pods must not be evicted before a machine moves.
	ReadPods
	// ReadReadiness waits until machines are ready before others go.
	ReadReadiness
	// ReadMachines reads a machine from the API server before it is removed.
	ReadMachines
	// DecideAgain decides again about a write that was lost.
	DecideAgain
	// RemindNames repeats the deletion of named machines.
	RemindNames
	// KeepReduction remembers that the applied excess has been reduced, though another write failed.
	KeepReduction
)

// refusesResize is the guard of resizes. If nothing changes, its answer stays the same.
func (k *walk) refusesResize(w *World, r resize) bool {
	seen, visible := w.sets[r.set].asksSeen, w.visible()
	switch {
	case r.fresh || r.asks == seen:
		return false
	case r.asks > seen:
		return w.reduced && r.total > visible+1
	}
	return w.record.excess > 0 && r.total < visible+1
}

// superfluous is the guard of creations.
func (k *walk) superfluous(w *World) bool {
	if k.Unguarded == GuardCreate || w.rolling() {
		return false
	}
	n, excess, workload := w.count(), w.record.excess > 0 || w.reduced, w.workload()
	leaving := n.leaving
	if n.staying < workload {
		leaving = n.leavingReserve
	}
	full := workload <= w.maxReplicas() && n.staying+leaving >= w.maxReplicas()
	return excess && n.staying >= int(w.visible()) || (excess || w.excess > 0 || n.leavingReserve > 0) && full
}

// count counts machines by whether they stay.
type count struct{ staying, leaving, leavingReserve int }

func (w *World) count() (n count) {
	for i := range w.machines {
		switch m := &w.machines[i]; {
		case !m.there:
		case !m.leaving():
			n.staying++
		case m.marked:
			n.leavingReserve++
			n.leaving++
		default:
			n.leaving++
		}
	}
	return n
}

// deletedAnyway reports whether a machine is deleted whatever the replicas are.
func (m *machine) deletedAnyway() bool {
	return m.named || m.shown.phase == failed || m.shown.going || m.shown.priority == 1
}

// refuses is the guard of deletions.
func (k *walk) refuses(w *World, i int) bool {
	m := &w.machines[i]
	if k.Unguarded == GuardRemove || m.deletedAnyway() {
		return false
	}
	set := &w.sets[m.set]
	present, spare := 0, 0
	for j := range w.machines {
		if other := &w.machines[j]; other.there && other.set == m.set && other.shown.there && !other.leaving() {
			present++
			if other.marked {
				spare++
			}
		}
	}
	ours := w.record.excess > 0 || m.was
	switch {
	case m.change.begun && m.change.free:
		return true
	case ours && present <= int(set.asksSeen):
		return true
	case w.record.excess > 0 && set.totalSeen > 0 && set.asksSeen > 0 && set.totalSeen < w.visible()+1:
		return true
	case k.needed(w, i, ours):
		return true
	case ours:
		return !m.shown.latest
	}
	return spare > 0 && set.asksSeen > 0
}

// needed is the part of the guard of deletions about serving machines that are needed.
func (k *walk) needed(w *World, i int, ours bool) bool {
	m := &w.machines[i]
	set := &w.sets[m.set]
	follows := set.totalSeen == set.asksSeen+1
	if k.Unguarded == GuardNeeded || m.marked || !follows && m.set != w.template {
		return false
	}
	serving, spare, unsettled := 0, 0, 0
	for j := range w.machines {
		switch other := &w.machines[j]; {
		case !other.there || !other.shown.there:
		case other.marked:
			if spare++; other.named && !other.returned {
				unsettled++
			}
		case !other.deletedAnyway() && !other.leaving():
			serving++
		}
	}
	return (ours || spare > 0) && serving <= w.workload()+unsettled
}
