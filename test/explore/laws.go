// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// crowded returns the law that the creation of one more machine breaks: all machines stay within
// max, except in a rollout, and except for machines that replace ones that fail or drain for long.
func (w *World) crowded() string {
	// A lower max applies once the excess has been reduced for it.
	n, limit := w.count(), max(w.maxReplicas(), int(w.record.max))
	switch {
	case w.rolling():
		return "" // machine-controller-manager's own surge, which it exceeds while a status is behind
	case n.staying < w.workload():
		n.leaving = n.leavingReserve
	case w.record.excess == 0 && n.leavingReserve == 0:
		n.leaving = 0
	}
	if all := n.staying + n.leaving + 1; int(w.replicas) <= w.maxReplicas() && all > limit {
		return fmt.Sprintf("I1: There are %d machines, %d of them leaving, and the maximum is %d.", all, n.leaving, limit)
	}
	return ""
}

// wronged returns the law that the deletion of a machine breaks: no busy machine is deleted in
// favor of a reserve machine, and no machine is deleted without a request. A deletion that was
// right when it was decided may be carried out late.
func (w *World) wronged(i int) string {
	m := &w.machines[i]
	if !m.busy || m.unhealthy() || m.excused || m.named || m.condemned || m.priority == 1 || w.sets[0].there && w.sets[1].there {
		return "" // also while a rollout replaces machines: machine-controller-manager drains them in any case
	}
	serving, spare := 0, 0
	for j := range w.machines {
		switch other := &w.machines[j]; {
		case !other.there || other.leaving() || other.unhealthy() && other.shown.phase != running:
		case other.marked && !other.busy:
			spare++
		default:
			serving++
		}
	}
	workload := w.workload()
	switch {
	case serving > min(int(w.lowest), workload):
		return ""
	case w.record.excess == 0:
		return "" // without an excess, machine-controller-manager deletes what it would without us
	case spare > 0:
		return fmt.Sprintf("I3: %s is busy and is deleted, though %d are in reserve and %d serve of %d.", name(i), spare, serving, workload)
	}
	return fmt.Sprintf("I7: %s is busy and is deleted, though %d serve of %d.", name(i), serving, workload)
}

// recordTurn records in which direction a decision moves, and returns the law that it breaks if it
// takes back an earlier one, though no fact has changed since.
func (w *World) recordTurn(d *decision) string {
	const unchanged = ", though no fact has changed."
	if was := w.turns.excess; w.turns.excess.turnsBack(directionOf(w.record.excess, d.record.excess)) {
		return fmt.Sprintf("I4: The applied excess was %s to %d, and is to be %d again%s", was, w.record.excess, d.record.excess, unchanged)
	}
	for i, c := range d.changes {
		move := unturned
		switch m := &w.machines[i]; {
		case c.hold && !m.marked:
			move = raised
		case c.free && m.marked:
			move = lowered
		}
		switch {
		case !w.turns.mark[i].turnsBack(move):
		case move == raised:
			return "I4: " + name(i) + " was released, and is to be in reserve again" + unchanged
		default:
			return "I4: " + name(i) + " was put into reserve, and is to be released again" + unchanged
		}
	}
	return ""
}

// Rest returns what is wrong with a world at rest.
func (r *Reserve) Rest(w World) string {
	p := r.plans.planFor(&w)
	workload := w.workload()
	excess := max(0, min(int(w.excess), w.maxReplicas()-workload))
	if w.unparsed {
		excess = int(w.record.excess)
	}
	counted := 0
	if w.inclusive && !w.unparsed {
		counted = excess
	}
	if w.keepsNamed() || w.isFull() {
		return ""
	}
	if !w.unparsed && int(w.record.counted) != counted {
		return fmt.Sprintf("I5: At rest with %d machines of the reserve counted, of %d.", w.record.counted, counted)
	}
	if w.record.counted > 0 && w.record.replicas != w.replicas {
		return fmt.Sprintf("I5: At rest, %d replicas are recorded with the reserve, of %d.", w.record.replicas, w.replicas)
	}
	if p.serving != workload || p.reserve != excess || p.ready != excess {
		return fmt.Sprintf("I5: At rest with %d serving of %d, and %d in reserve, %d of them ready, of %d: %s", p.serving, workload, p.reserve, p.ready, excess, p.message)
	}
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.closed != m.marked {
			return fmt.Sprintf("I5: At rest, the Node of %s is closed=%t.", name(i), m.closed)
		}
	}
	return ""
}

// isFull reports whether machine-controller-manager is about to create a machine for which the
// search has no place.
func (w *World) isFull() bool {
	return w.machines[slots-1].there && w.sets[0].creating+w.sets[1].creating > 0
}

// keepsNamed reports whether a client gave a serving machine priority 1 and has another one
// deleted. No priority of 1 is overwritten, so this machine is deleted before any in reserve, and
// the reserve cannot shrink. The condition says so.
func (w *World) keepsNamed() bool {
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.priority == 1 && !m.marked && !m.leaving() {
			return true
		}
	}
	return false
}
