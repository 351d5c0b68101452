// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// mishanded returns the law that a write of the balance controller breaks.
func (w *MoveWorld) mishanded(i int, one moveWrite) string {
	if at := int(one.gone) - 1; at >= 0 && at < zoneSlots {
		if u := &w.units[i][at]; u.stays() && u.marked {
			return fmt.Sprintf("B4: %s is in reserve, and is named for a replica that has moved.", unitName(i, at))
		}
	}
	return ""
}

// recordTurn records in which direction a plan moves a replica with its machine, and returns the
// law that this breaks.
func (w *MoveWorld) recordTurn(i int, one moveWrite) string {
	taken := one.to.move
	if taken.gives || taken.machines == 0 || w.shown[i].move != (half{id: taken.id, reserve: w.shown[i].move.reserve}) || w.shown[1-i].move.machine == 0 {
		return ""
	}
	if w.turned.turnsBack([zones]direction{lowered, raised}[i]) {
		return fmt.Sprintf("I4: A machine moves to %s, and one has just moved from there, though no fact has changed.", name(i))
	}
	return ""
}

// misbalanced returns the law that a world breaks: replicas change only as owners ask.
func (w *MoveWorld) misbalanced() string {
	sum, moving := w.total(), 0
	for i := range zones {
		h, other := w.zones[i].move, w.zones[1-i].move
		if !h.gives && h.machines > 0 && other.gives && other.id == h.id {
			moving += int(h.machines)
		}
	}
	switch {
	case sum < int(w.owed):
		return fmt.Sprintf("B1: There are %d replicas, and owners asked for %d.", sum, w.owed)
	case sum > int(w.owed+w.slack)+moving:
		return fmt.Sprintf("B1: There are %d replicas, %d of them in two places, and owners asked for %d.", sum, moving, w.owed)
	}
	return ""
}

// unbalanced returns what is wrong with a world at rest.
func (m *Moves) unbalanced(w *MoveWorld) string {
	free := 0
	for i := range zones {
		z := &w.zones[i]
		serving, spare := w.count(i, (*unit).serves), w.count(i, func(u *unit) bool { return u.marked && u.phase == running })
		switch {
		case z.move.id > 0 && !m.mayWait(w):
			return fmt.Sprintf("I5: At rest, %s has %s.", name(i), z.move)
		case z.move.id == 0 && z.held && z.applied != z.replicas:
			return fmt.Sprintf("I5: At rest, %s applies %d of %d replicas.", name(i), z.applied, z.replicas)
		case serving > z.workload() && m.mayWait(w): // it is not drained
		case serving != z.workload() || spare != z.excess() || w.present(i) != serving+spare:
			return fmt.Sprintf("I5: At rest, %s has %d machines that serve, of %d, and %d in reserve, of %d.", name(i), serving, z.workload(), spare, z.excess())
		}
		free += max(0, int(z.limit)-int(z.replicas))
	}
	a, b := &w.zones[0], &w.zones[1]
	if shares := a.ownShare() + b.ownShare(); shares != min(int(a.pool), free) {
		return fmt.Sprintf("B6: At rest, shares are %d and %d, of %d.", a.ownShare(), b.ownShare(), a.pool)
	}
	for i := range zones {
		from, to := &w.zones[i], &w.zones[1-i]
		if m.Continuous && !m.mayWait(w) && from.replicas > to.replicas+1 && to.replicas < to.limit {
			return fmt.Sprintf("I5: At rest, %s has %d replicas, and %s has %d.", name(i), from.replicas, name(1-i), to.replicas)
		}
	}
	return ""
}

// mayWait reports whether a move may wait, because a machine may not go.
func (m *Moves) mayWait(w *MoveWorld) bool {
	for i := range zones {
		for at := range w.units[i] {
			if w.units[i][at].pinned {
				return true
			}
		}
	}
	return false
}
