// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// count counts machines.
type count struct{ staying, leaving, leavingReserve, spare, serving int }

func (w *World) count() (n count) {
	for i := range w.machines {
		switch m, h := &w.machines[i].machine, &w.machines[i].host.is; {
		case !m.is.there:
		case !m.is.leaving():
			n.staying++
			switch {
			case m.is.unhealthy() && m.seen.phase == m.is.phase:
			case m.is.marked && !h.busy:
				n.spare++
			default:
				n.serving++
			}
		case m.is.marked:
			n.leavingReserve++
			n.leaving++
		default:
			n.leaving++
		}
	}
	return n
}

// isRolling reports whether machines of an older template are replaced, or are about to be.
func (w *World) isRolling() bool {
	if !w.deployment.isSeen() && w.deployment.is.template != w.deployment.seen.template {
		return true
	}
	return w.sets[1-w.deployment.is.template].is.there
}

// crowded returns the law that the creation of one more machine breaks. A MachineSet gets no more
// machines than it asks for. All machines, also those that are leaving, stay within max, except that
// workload waits only for machines of the reserve to leave. In a rollout, the sizes of MachineSets
// decide: see misgrown.
func (w *World) crowded(own *work, s uint8) string {
	n, d, asks := w.count(), &own.next, int(w.sets[s].is.asks)
	staying := 0
	for i := range w.machines {
		if m := &w.machines[i].machine.is; m.stays() && m.set == s && own.errands[i].goes == stays {
			staying++
		}
	}
	workload, limit := d.workload(), d.maxReplicas()
	if n.staying < workload {
		limit = max(limit, workload)
		n.leaving = n.leavingReserve
	}
	switch all := n.staying + n.leaving + 1; {
	case staying+1 > asks:
		return fmt.Sprintf("I1: There are %d machines of %s, which asks for %d.", staying+1, setName(s), asks)
	case all > limit && !w.isRolling():
		return fmt.Sprintf("I1: There are %d machines, %d of them leaving, and the maximum is %d.", all, n.leaving, limit)
	}
	return ""
}

// wronged returns the law that the deletion of a machine breaks: no busy machine is deleted in favor
// of a reserve machine, and no machine is deleted without a request.
func (w *World) wronged(i int, own *work) string {
	m, h := &w.machines[i].machine.is, &w.machines[i].host.is
	d := &w.deployment.is
	if !h.busy || m.unhealthy() || d.named.has(i) || m.first || w.isRolling() {
		return "" // a rollout drains machines in any case
	}
	n := w.count()
	workload := min(d.workload(), own.base.workload())
	switch {
	case n.serving > workload:
		return ""
	case n.spare == 0 && d.excess == 0 && d.record.excess == 0:
		return "" // without a reserve, machines go as they do without us
	case n.spare > 0:
		return fmt.Sprintf("I3: %s is busy and is deleted, though %d are in reserve and %d serve of %d.", name(i), n.spare, n.serving, workload)
	}
	return fmt.Sprintf("I7: %s is busy and is deleted, though %d serve of %d.", name(i), n.serving, workload)
}

// recordTurns records in which direction a plan moves machines, and returns the law that it breaks if
// it takes back an earlier one, though the controller has learned no fact since.
func (w *World) recordTurns(own *work) string {
	for i, e := range own.errands {
		move := unturned
		switch m := &w.machines[i].machine.seen; {
		case e.writes && e.marked && !m.marked:
			move = raised
		case e.writes && m.marked && !e.marked:
			move = lowered
		}
		switch {
		case !w.turns[i].turnsBack(move):
		case move == raised:
			return "I4: " + name(i) + " was released, and is to be in reserve again, though no fact has changed."
		default:
			return "I4: " + name(i) + " was put into reserve, and is to be released again, though no fact has changed."
		}
	}
	return ""
}

// Rest returns what is wrong with a world at rest.
func (r *Reserve) Rest(w World) string {
	if w.place() < 0 && w.works[syncing].births != [2]births{} {
		return "" // the search has no place for the next machine
	}
	d := &w.deployment.is
	workload, excess, counted := d.workload(), d.excessWithin(), 0
	if d.unparsed {
		excess = int(d.record.excess)
	}
	if d.inclusive && !d.unparsed {
		counted = excess
	}
	serving, spare, ready := 0, 0, 0
	for i := range w.machines {
		m, h := &w.machines[i].machine.is, &w.machines[i].host.is
		switch {
		case !m.there || m.unhealthy() && m.preserved:
		case h.closed != m.marked:
			return fmt.Sprintf("I5: At rest, the Node of %s is closed=%t.", name(i), h.closed)
		case !m.marked:
			serving++
		default:
			spare++
		}
		if m.there && m.phase == running {
			ready++
		}
	}
	switch total := w.sets[0].is.asks + w.sets[1].is.asks; {
	case !d.unparsed && int(d.record.counted) != counted:
		return fmt.Sprintf("I5: At rest with %d machines of the reserve counted, of %d.", d.record.counted, counted)
	case d.record.counted > 0 && d.record.replicas != d.replicas:
		return fmt.Sprintf("I5: At rest, %d replicas are recorded with the reserve, of %d.", d.record.replicas, d.replicas)
	case serving != workload || spare != excess || ready != workload+excess:
		return fmt.Sprintf("I5: At rest with %d serving of %d, and %d in reserve of %d; %d of all are ready.", serving, workload, spare, excess, ready)
	case int(total) != workload+excess:
		return fmt.Sprintf("I5: At rest, MachineSets ask for %d machines instead of %d.", total, workload+excess)
	}
	return ""
}

// isRolling reports whether a rollout is known.
func (k *knownPool) isRolling() bool {
	old := k.sets[1-k.deployment.template]
	return old.there && old.asks > 0 || k.has(func(_ int, m *machine) bool { return m.set != k.deployment.template && m.stays() })
}

func (k *knownPool) countIf(is func(i int, m *machine) bool) (n int) {
	for i := range k.machines {
		if m := &k.machines[i]; m.there && is(i, m) {
			n++
		}
	}
	return n
}

func (k *knownPool) has(is func(i int, m *machine) bool) bool { return k.countIf(is) > 0 }

// isGoing reports whether a machine is being deleted or named for deletion.
func (k *knownPool) isGoing(i int) bool {
	m := &k.machines[i]
	return m.leaving() || m.condemned || k.deployment.named.has(i)
}

// isHeld reports whether a machine is in reserve: one that runs workload serves, whatever its mark.
func (k *knownPool) isHeld(i int) bool { return k.machines[i].marked && !k.hosts[i].busy }

// hasReserve reports whether there is a trace of a reserve. Without one, machines go as they do without
// us.
func (k *knownPool) hasReserve() bool {
	d := &k.deployment
	return d.excess > 0 || d.record.excess > 0 || k.has(func(i int, m *machine) bool { return m.marked || k.hosts[i].closed })
}

// misdeleted is laws 5 and 6 of package reserve: a machine of the reserve goes only if it is closed and
// empty, and machines that serve go only beyond R. A rollout never deletes so many that fewer are
// ready than it has to keep.
func (k *knownPool) misdeleted(w *work) string {
	serving, ready, readyGoing, cut, cutNew := 0, 0, 0, 0, 0
	for i := range k.machines {
		m, h, e := &k.machines[i], &k.hosts[i], &w.errands[i]
		if !m.there || k.isGoing(i) {
			continue
		}
		marked := m.marked && !(e.writes && !e.marked)
		if m.phase == running {
			ready++
		}
		if !marked && !m.unhealthy() {
			serving++
		}
		switch {
		case e.goes == stays || m.unhealthy() || m.first:
		case m.phase == running && marked && (h.busy || h.there && !h.closed):
			return fmt.Sprintf("L6: %s is deleted, and its Node is not closed and empty.", name(i))
		case !marked && m.hasProviderID():
			if cut++; m.set == k.deployment.template {
				cutNew++
			}
		}
		if e.goes != stays && m.phase == running && !m.first {
			readyGoing++
		}
	}
	workload := w.next.workload()
	switch rolling := k.isRolling(); {
	case !k.hasReserve():
	case !rolling && cut > max(0, serving-workload):
		return fmt.Sprintf("L6: %d machines that serve are deleted: %d serve of %d.", cut, serving, workload)
	case rolling && cutNew > max(0, serving-workload) && k.has(func(i int, m *machine) bool {
		return m.set == k.deployment.template && m.stays() && k.isHeld(i) && w.errands[i] == errand{}
	}):
		return fmt.Sprintf("L6: %d new machines that serve are deleted in place of those in reserve: %d serve of %d.", cutNew, serving, workload)
	case rolling && readyGoing > 0 && ready-readyGoing < workload:
		return fmt.Sprintf("L6: %d ready machines of %d are deleted in a rollout, and %d are needed.", readyGoing, ready, workload)
	}
	return ""
}

// misentered is law 4: a machine enters the reserve only if it is empty, and as many serve without it
// as workload needs.
func (k *knownPool) misentered(w *work) string {
	for i := range k.machines {
		if e := &w.errands[i]; e.enters && (k.hosts[i].busy || !k.machines[i].hasProviderID()) {
			return "L4: " + name(i) + " is put into reserve, and runs a pod or has no provider id."
		}
	}
	entering := k.has(func(i int, _ *machine) bool { return w.errands[i].enters })
	serving := k.countIf(func(i int, m *machine) bool {
		held := k.isHeld(i)
		if e := &w.errands[i]; e.writes {
			held = e.marked
		}
		return !held && !k.isGoing(i) && !m.unhealthy()
	})
	if entering && serving < w.next.workload() {
		return fmt.Sprintf("L4: Machines are put into reserve, and %d serve of %d.", serving, w.next.workload())
	}
	return ""
}

// misgrown is law 8: MachineSets do not grow beyond what workload and the excess need, nor beyond
// max. In a rollout, they may together have one machine more.
func (k *knownPool) misgrown(w *work) string {
	before, after := 0, 0
	for s, one := range k.sets {
		before, after = before+int(one.asks), after+int(one.asks)
		if next := w.sets[s]; next.pending {
			after += int(next.to.asks) - int(one.asks)
		}
	}
	d := &w.next
	most := max(d.workload()+int(d.record.excess), d.workload())
	limit := max(d.maxReplicas(), d.workload())
	if k.isRolling() {
		most, limit = most+surge, limit+surge
	}
	switch {
	case after <= before:
	case after > most:
		return fmt.Sprintf("L8: MachineSets grow to %d machines, and %d are needed.", after, most)
	case after > limit && k.isRolling(): // else machines wait until there is room
		return fmt.Sprintf("I1: MachineSets grow to %d machines, and the maximum is %d.", after, limit)
	}
	return ""
}

// misborn is law 1: a new machine serves only if fewer than R others could.
func (k *knownPool) misborn(w *work) string {
	serve, spare := int(w.births[0].serve+w.births[1].serve), int(w.births[0].reserve+w.births[1].reserve)
	able := k.countIf(func(i int, m *machine) bool {
		return !k.isGoing(i) && !m.unhealthy() && !(w.errands[i].goes == forSurplus && k.isHeld(i))
	})
	switch workload := w.next.workload(); {
	case k.deployment.excess == 0 && k.deployment.record.excess == 0:
	case serve > 0 && able+serve > workload:
		return fmt.Sprintf("L1: %d new machines serve, though %d others could serve of %d.", serve, able, workload)
	case spare > 0 && able+serve < workload:
		return fmt.Sprintf("L1: %d new machines are in reserve, though only %d others could serve of %d.", spare, able, workload)
	}
	return ""
}

// misnamed is law 3: R rises at most once for each machine that is named.
func (k *knownPool) misnamed(w *work) string {
	named := 0
	for i := range k.machines {
		if k.deployment.named.has(i) {
			named++
		}
	}
	if by := w.next.workload() - k.deployment.workload(); by > named {
		return fmt.Sprintf("L3: R rises by %d for %d machines that were named.", by, named)
	}
	return ""
}

// mislowered is law 11 of package reserve: after a reduction of replicas, R falls only as far as machines that serve are
// gone, and the reserve takes the rest.
func (k *knownPool) mislowered(w *work) string {
	serving := k.countIf(func(i int, _ *machine) bool { return !k.isHeld(i) && !k.isGoing(i) })
	was, is := &k.deployment, &w.next
	switch by := is.workload() - was.workload(); {
	case by < 0 && is.workload() < serving:
		return fmt.Sprintf("L17: R falls to %d, and %d machines serve or may recover.", is.workload(), serving)
	case by == 0 && was.record.counted > 0 && was.replicas < was.record.replicas && is.replicas > was.replicas:
		return fmt.Sprintf("L17: A client has lowered replicas to %d, and they are to be %d again.", was.replicas, is.replicas)
	}
	return ""
}

// misread is invariant 6: settings that cannot be parsed change nothing. What a client reduced before
// counts as max.
func (k *knownPool) misread(w *work) string {
	if k.deployment.unparsed && w.memory.lowered == never && w.next.record.excess > 0 && w.next.record.max != k.deployment.record.max {
		return fmt.Sprintf("I6: The bounds cannot be parsed, and the max that is recorded changes to %d.", w.next.record.max)
	}
	return ""
}
