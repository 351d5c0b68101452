// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// controllerSteps adds the steps of the machine-taint controller: it plans, makes the writes of the
// plan, the machines' in any order, and ends it.
func (k *walk) controllerSteps() {
	p := k.from.plan
	if !p.pending {
		k.addStep("The controller plans.", k.makePlan)
		if k.Unguarded == RepairNodes {
			return
		}
		k.machines(func(m *machine) bool { return m.closed != m.inReserve() && m.phase > pending && !m.leaving() }, func(i int) {
			k.addStep("The controller gives the Node of "+name(i)+" the mark of its Machine.", func(w *World) string { w.machines[i].closed = w.machines[i].inReserve(); return "" })
		})
		return
	}
	if p.returns {
		k.addStep("The controller restores replicas.", func(w *World) string { return k.restore(w) })
		return
	}
	written := true
	k.machines(func(m *machine) bool { return m.change.pending }, func(i int) {
		written = false
		k.addStep("The controller writes "+name(i)+".", func(w *World) string { return k.writeMachine(w, i) })
	})
	if written {
		k.addStep("The controller completes its plan.", func(w *World) string { return k.complete(w) })
	}
}

// makePlan decides, and records the writes to do.
func (k *walk) makePlan(w *World) (broken string) {
	d := k.decision(w)
	next := plan{pending: true, replicas: d.replicas, record: d.record, returned: d.returned, returns: d.returns, memory: d.memory}
	for s := range w.sets {
		next.asked += max(w.sets[s].asks, w.sets[s].asksSeen)
	}
	changed := next.replicas != w.replicas || next.record != w.record || next.memory != w.memory
	for i, c := range d.changes {
		if c.pending {
			w.machines[i].change, changed = c, true
			next.frees = next.frees || c.free
		}
		changed = changed || d.returned[i] != w.machines[i].returned
	}
	if !changed {
		return w.misrested()
	}
	if k.Reductions {
		next.noteStuck(w)
	}
	broken = cmp.Or(w.recordTurn(d), w.misplanned(d))
	w.plan = next
	return broken
}

// decision returns the plan for a world.
func (k *walk) decision(w *World) *decision {
	if k.Unguarded == KeepUnparsed && w.unparsed {
		without := *w
		without.unparsed, without.excess = false, 0
		return k.plans.planFor(&without)
	}
	d := k.plans.planFor(w)
	if k.Unguarded == RetireSurplus {
		return d.retireMore(w)
	}
	return d
}

// writeMachine does the next write of a machine's change.
func (k *walk) writeMachine(w *World, i int) (broken string) {
	m := &w.machines[i]
	registered := m.phase > pending
	switch c := &m.change; {
	case c.free && registered && m.closed && !(m.priority <= reserve.PriorityVictim || m.leaving()):
		m.closed, c.begun = false, true
	case c.hold && registered && !m.closed:
		m.closed, c.begun = true, true
	case c.hold && m.busy && k.Unguarded != GuardEmpty, c.outdated && k.Unguarded != GuardVersion, m.leaving():
		w.plan.failed = true
		m.change = change{}
	default:
		switch {
		case c.hold && m.busy:
			return "I2: " + name(i) + " is busy and is put into reserve."
		case c.outdated:
			return "I9: " + name(i) + " is written though it has changed since."
		}
		m.record()
	}
	return ""
}

// record writes the decision to the Machine. If the machine was to be released and may be being
// deleted, its Node follows.
func (m *machine) record() {
	c := m.change
	m.change = change{}
	if c.hold || c.free {
		m.marked, m.was = c.hold, true
	}
	if c.free {
		m.closed = false
	}
	if c.priority > 0 {
		m.priority = c.priority
	}
	m.newVersion()
}

// restore writes the MachineDeployment before the machines.
func (k *walk) restore(w *World) string {
	w.plan.returns = false
	broken, done := k.writeDeployment(w)
	if !done {
		k.abandon(w)
	}
	return broken
}

// abandon forgets a plan and its writes.
func (k *walk) abandon(w *World) {
	w.plan = plan{}
	for i := range w.machines {
		w.machines[i].change = change{}
	}
}

// complete writes the MachineDeployment, unless machines were released: then the next plan does
// that.
func (k *walk) complete(w *World) (broken string) {
	p := w.plan
	if !p.frees || p.failed {
		broken, _ = k.writeDeployment(w)
	}
	w.plan = plan{}
	if w.replicas == p.replicas && w.record == p.record && k.Unguarded != KeepMemory && !(k.Unguarded == KeepReduction && p.failed) {
		w.memory = p.memory
	}
	return broken
}

// writeDeployment writes the numbers of the plan, and reports whether the MachineDeployment has
// them.
func (k *walk) writeDeployment(w *World) (broken string, done bool) {
	p := &w.plan
	next := *w
	next.replicas, next.record = p.replicas, p.record
	for i := range next.machines {
		next.machines[i].returned = p.returned[i]
	}
	if next.replicas == w.replicas && next.record == w.record && next.machines == w.machines {
		return "", true
	}
	shrinks, asked := next.visible() < w.visible(), uint8(0)
	for s := range w.sets {
		asked += max(w.sets[s].asks, w.sets[s].asksSeen)
	}
	switch {
	case p.outdated && k.Unguarded == GuardVersion:
		return "I9: The MachineDeployment is written though it has changed since.", false
	case p.outdated || shrinks && asked > p.asked:
		return "", false
	case w.unparsed && next.record.excess < w.record.excess && w.isQuiet():
		return fmt.Sprintf("I6: The bounds cannot be parsed, and the excess falls to %d.", next.record.excess), true
	}
	next.reduced = w.reduced || shrinks
	broken = next.recordReduction(w.record.excess)
	*w = next
	return broken, true
}

// noteStuck records the machines for which a plan reduces the applied excess.
func (p *plan) noteStuck(w *World) {
	if p.record.excess >= w.record.excess || p.memory.surplus != never || p.memory.lowered != never || w.memory.retry == ahead {
		return
	}
	for i := range w.machines {
		m := &w.machines[i]
		p.stuck[i] = m.there && m.failing && m.marked && !m.leaving()
	}
}

// recordReduction records for which machines the applied excess has been reduced, and returns the
// law that it breaks: it falls once for each machine that cannot be made.
func (w *World) recordReduction(before uint8) string {
	owed, all := uint8(0), uint8(0)
	for i := range w.machines {
		if m := &w.machines[i]; w.plan.stuck[i] {
			if all++; !m.paid {
				owed++
			}
			m.paid = true
		}
	}
	if by := before - w.record.excess; all > 0 && by > owed && int(w.record.excess) < min(int(w.excess), w.maxReplicas()-w.workload()) {
		return fmt.Sprintf("L10: The applied excess falls by %d for %d machines that cannot be made and for which it has not fallen yet.", by, owed)
	}
	return ""
}

// isQuiet reports whether nothing but its settings would change the reserve.
func (w *World) isQuiet() bool {
	for i := range w.machines {
		if w.machines[i].failing {
			return false
		}
	}
	return w.plan.memory.failures == 0 && w.plan.memory.surplus == never && w.plan.memory.lowered == never && w.workload()+int(w.record.excess) <= int(w.record.max)
}

// stores adds the steps of machine-controller-manager's stores: each object there is updated some
// time.
func (k *walk) stores() {
	k.machines(func(m *machine) bool { return !m.shown.latest }, func(i int) {
		k.addStep("machine-controller-manager sees "+name(i)+".", func(w *World) string { w.machines[i].updateStore(); return "" })
	})
	k.addStep("machine-controller-manager sees the MachineDeployment.", func(w *World) string { w.seeDeployment(); return "" })
	for s := range k.from.sets {
		if !k.from.sets[s].latest() {
			k.addStep("machine-controller-manager sees "+setName(uint8(s))+".", func(w *World) string { w.sets[s].updateStore(); return "" })
		}
	}
}

func (w *World) seeDeployment() {
	w.deploymentSeen, w.templateSeen = w.visible(), w.template
	for i := range w.machines {
		m := &w.machines[i]
		m.shown.named, m.shown.due = m.named, m.due
	}
}

// restart forgets the writes in progress and the memory of the process, and lists everything again.
func (w *World) restart() {
	w.plan, w.memory, w.reduced, w.resizes = plan{}, memory{}, false, [2]resize{}
	for s := range w.sets {
		w.sets[s].creating = 0
		w.sets[s].updateStore()
	}
	for i := range w.machines {
		if m := &w.machines[i]; m.there {
			m.change, m.chosen, m.excused, m.paid = change{}, false, false, false
			m.updateStore()
		}
	}
	w.seeDeployment()
	w.settleLowest()
}
