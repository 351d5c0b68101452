// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// knows reports whether a work is one of the running process, which knows the answers to its
// requests.
func (k *walk) knows(w *World, own *work, f fate) bool {
	return f == done && own != &w.works[outgoing] && k.Unguarded != KeepAnswers
}

// touchDeployment records that somebody else has changed the MachineDeployment.
func (w *World) touchDeployment(by *work) {
	for n := range w.works {
		if own := &w.works[n]; own != by && *own != (work{}) {
			own.stale = true
		}
	}
}

// touchMachine records that somebody else has changed a Machine.
func (w *World) touchMachine(i int, by *work) {
	for n := range w.works {
		if own := &w.works[n]; own != by && own.errands[i] != (errand{}) {
			own.errands[i].stale = true
		}
	}
}

// writeDeployment writes the MachineDeployment, at the version that was looked at.
func (k *walk) writeDeployment(w *World, own *work, f fate) (broken string) {
	if own.writes = false; f == lost || own.stale && k.Unguarded != GuardVersion {
		own.abort()
		return ""
	}
	d := &w.deployment
	switch {
	case own.stale:
		return "I9: The MachineDeployment is written though it has changed since."
	case d.is.unparsed && own.next.record.excess < d.is.lastAllowed() && own.memory.failures == 0 && own.memory.lowered == never && own.memory.surplus == never:
		broken = fmt.Sprintf("I6: The bounds cannot be parsed, and the excess falls to %d.", own.next.record.excess)
	}
	d.is.replicas, d.is.record, d.is.named, d.is.due = own.next.replicas, own.next.record, own.next.named, own.next.due
	w.touchDeployment(own)
	own.base = d.is
	if k.knows(w, own, f) {
		d.show()
	}
	if own.confirmed = true; f == unanswered {
		own.abort()
	}
	return broken
}

// confirm reads the MachineDeployment, before its MachineSets are written.
func (k *walk) confirm(w *World, own *work, f fate) string {
	own.rebase(w)
	if own.confirmed = true; f != done || own.stale && k.Unguarded != ConfirmUnchanged {
		own.abort()
	}
	return ""
}

// rebase judges deletions by the MachineDeployment as it is now, if it has changed.
func (w *work) rebase(world *World) {
	if w.base = world.deployment.is; w.stale {
		for i := range w.errands {
			w.errands[i].excused = false
		}
	}
}

// settle reads the MachineDeployment and the MachineSets, before machines are created and deleted.
func (k *walk) settle(w *World, own *work, f fate) string {
	changed := own.stale && !own.confirmed || !w.sets[0].isSeen() || !w.sets[1].isSeen()
	if own.settled = true; f != done || changed && k.Unguarded != ConfirmUnchanged {
		own.omitLives()
	}
	if !own.confirmed {
		own.rebase(w)
	}
	return ""
}

// writeSet writes a MachineSet.
func (k *walk) writeSet(w *World, own *work, s int, f fate) string {
	one, set := own.sets[s], &w.sets[s]
	own.sets[s] = setWrite{}
	conflicts := one.stale && k.Unguarded != GuardVersion || one.creates && set.is.there
	if conflicts || f != done {
		own.failed = true
		w.unsure[s] = w.unsure[s] || own != &w.works[outgoing]
		if own.sets == [2]setWrite{} {
			defer own.abort()
		}
	}
	if conflicts || f == lost {
		return ""
	}
	if one.stale {
		return "I9: " + setName(uint8(s)) + " is written though it has changed since."
	}
	set.is = one.to
	for n := range w.works {
		if other := &w.works[n]; other != own && other.sets[s].pending {
			other.sets[s].stale = true
		}
	}
	if k.knows(w, own, f) {
		set.show()
	}
	if own.sets == [2]setWrite{} && own.failed {
		own.abort()
	}
	return ""
}

// writeMachine writes a Machine.
func (k *walk) writeMachine(w *World, own *work, i int, f fate) string {
	e, m := &own.errands[i], &w.machines[i].machine
	if e.writes = false; f != done || e.stale {
		if own.failed = true; own == &w.works[releasing] {
			e.node = noNode
		}
	}
	switch {
	case f == lost, e.stale && k.Unguarded != GuardVersion, !m.is.there:
		return ""
	case e.stale:
		return "I9: " + name(i) + " is written though it has changed since."
	case e.enters && w.machines[i].host.is.busy:
		return "I2: " + name(i) + " is busy and is put into reserve."
	case !m.is.hasProviderID() && e.marked != m.is.marked:
		return "L14: " + name(i) + " gets or loses the mark before it has a provider id."
	}
	if m.is.marked != e.marked {
		m.is.later = e.marked
	}
	m.is.marked, m.is.condemned, m.is.first = e.marked, e.condemned, e.first
	w.touchMachine(i, own)
	if own != &w.works[syncing] {
		w.turns = [slots]direction{} // two that do not know of each other may release one machine each
	}
	if k.knows(w, own, f) {
		m.show()
	}
	return ""
}

// writeNode gives a Node the taint, or removes it.
func (k *walk) writeNode(w *World, own *work, i int, f fate) string {
	e, h := &own.errands[i], &w.machines[i].host
	closes := e.node == closing
	refused := f != done || e.staleNode || w.silent.is
	if e.node = noNode; refused {
		if own.failed = true; e.enters || own == &w.works[releasing] {
			e.writes = false
		}
	}
	switch {
	case f == lost, w.silent.is, e.staleNode && k.Unguarded != GuardVersion, !h.is.there:
		return ""
	case e.staleNode:
		return "I9: The Node of " + name(i) + " is written though it has changed since."
	}
	h.is.closed, e.begun = closes, own == &w.works[releasing] && e.writes
	for n := range w.works {
		if other := &w.works[n]; other != own && other.errands[i].node != noNode {
			other.errands[i].staleNode = true
		}
	}
	if k.knows(w, own, f) {
		h.seen.closed = closes
	}
	return ""
}

// list reads the pods of a machine in reserve, before it is deleted, or of one that enters it.
func (k *walk) list(w *World, own *work, i int, f fate) string {
	e, s := &own.errands[i], &w.machines[i]
	e.begun = true
	lists := e.enters || s.machine.is.marked && s.machine.is.hasProviderID()
	isOpen := e.goes != stays && s.machine.is.marked && (s.host.seen.there && !s.host.seen.closed || w.works[releasing].errands[i].begun)
	if lists && (f != done || w.silent.is || s.host.is.busy) && k.Unguarded != ListPods || isOpen && k.Unguarded != ExcludeReleases {
		own.failed, e.goes, e.writes = true, stays, e.writes && !e.enters
	}
	return ""
}

// delete deletes a machine, at the version that was looked at.
func (k *walk) delete(w *World, own *work, i int, f fate) (broken string) {
	e, s := own.errands[i], &w.machines[i]
	own.errands[i].goes = stays
	if !s.machine.is.there {
		s.machine.show() // it does not exist, so nothing is to be done
		return ""
	}
	if w.works[releasing].errands[i].begun && own == &w.works[syncing] && k.Unguarded != ExcludeReleases {
		own.failed = true
		return "" // it is being released
	}
	if f != done || e.stale {
		own.failed, s.unsure = true, s.unsure || own != &w.works[outgoing]
	}
	switch {
	case f == lost, e.stale && k.Unguarded != GuardVersion:
		return ""
	case e.stale:
		return "I9: " + name(i) + " is deleted though it has changed since."
	case e.goes == forSurplus && s.machine.is.marked && s.host.is.busy:
		broken = "I2: " + name(i) + " is deleted as part of the reserve, and a pod runs there."
	case !e.excused:
		broken = w.wronged(i, own)
	}
	s.machine.is.phase, s.machine.is.preserved, s.machine.is.failing = terminating, false, false
	w.touchMachine(i, own)
	w.turns = [slots]direction{}
	if k.knows(w, own, f) {
		s.machine.show()
	}
	return broken
}

// birthSteps adds the creation of the next machine. The first ones serve.
func (k *walk) birthSteps(who int) {
	for s, b := range k.from.works[who].births {
		if b == (births{}) {
			continue
		}
		if k.from.place() >= 0 || k.from.lostBirth(uint8(s)) >= 0 {
			k.request(who, "creates a machine", func(w *World, own *work, f fate) string { return k.create(w, own, uint8(s), f) })
		}
		return
	}
}

// lostBirth returns a machine whose creation had no answer: the request is repeated with its name.
func (w *World) lostBirth(s uint8) int {
	for i := range w.machines {
		if one := &w.machines[i]; one.repeated && one.machine.is.there && one.machine.is.set == s {
			return i
		}
	}
	return -1
}

// create creates a machine, which serves or is in reserve from the beginning.
func (k *walk) create(w *World, own *work, s uint8, f fate) string {
	b := &own.births[s]
	serves := b.serve > 0
	if serves {
		b.serve--
	} else {
		b.reserve--
	}
	if f != done {
		*b = births{}
	}
	if i := w.lostBirth(s); i >= 0 && k.Unguarded != RepeatNames && own == &w.works[syncing] {
		if f == done {
			w.machines[i].machine.show()
			w.machines[i].repeated, w.turns = false, [slots]direction{}
		}
		return "" // one of this name exists
	}
	if f == lost {
		return ""
	}
	broken := ""
	if !k.Instances { // nothing but their lease keeps two instances from creating the same machine
		broken = w.crowded(own, s)
	}
	i := w.place()
	w.machines[i] = slot{machine: pair[machine]{is: machine{there: true, set: s, marked: !serves}}}
	if k.knows(w, own, f) {
		w.machines[i].machine.show()
	}
	w.machines[i].repeated = f == unanswered
	w.turns = [slots]direction{}
	return broken
}
