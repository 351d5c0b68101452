// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// walk collects the steps from one world.
type walk struct {
	Reserve
	from  World
	steps []Step[World]
}

// Steps returns everything that can happen next. Steps that wait for time to pass happen only if
// nothing else is left.
func (r Reserve) Steps(w World) []Step[World] {
	k := &walk{Reserve: r, from: w}
	k.controllerSteps()
	k.stores()
	k.manager()
	k.cloudSteps()
	if k.onlyFaultsLeft() {
		k.timeSteps()
	}
	if w.faults > 0 {
		k.disturb()
	}
	return k.steps
}

// onlyFaultsLeft reports whether only faults are left to happen.
func (k *walk) onlyFaultsLeft() bool {
	for _, step := range k.steps {
		if step.To != k.from {
			return false
		}
	}
	return true
}

// addStep adds a step that happens sooner or later. do returns the law that it breaks.
func (k *walk) addStep(what string, do func(w *World) (broken string)) {
	w := k.from
	broken := do(&w)
	k.steps = append(k.steps, Step[World]{What: what, To: w, Broken: broken})
}

// addFault adds a step that need not happen.
func (k *walk) addFault(what string, do func(w *World)) {
	w := k.from
	w.faults--
	do(&w)
	k.steps = append(k.steps, Step[World]{What: what, To: w, Fault: true})
}

// machines calls f with each machine that meets a condition.
func (k *walk) machines(is func(m *machine) bool, f func(i int)) {
	for i := range k.from.machines {
		if m := &k.from.machines[i]; m.there && is(m) {
			f(i)
		}
	}
}

// controllerSteps adds the steps of the machine-taint controller: it plans, makes the writes of the
// plan, the machines' in any order, and ends it.
func (k *walk) controllerSteps() {
	if !k.from.plan.pending {
		k.addStep("The controller plans.", func(w *World) string { k.makePlan(w); return "" })
		k.machines(func(m *machine) bool { return m.closed != m.marked && m.hasProviderID() && !m.leaving() && !m.busy }, func(i int) {
			k.addStep("The controller gives the Node of "+name(i)+" the mark of its Machine.", func(w *World) string { w.machines[i].closed = w.machines[i].marked; return "" })
		})
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
func (k *walk) makePlan(w *World) {
	p := reserve.NewPlan(k.viewOf(w))
	next := plan{pending: true, asked: max(w.asks, w.asksShown), memory: memory{
		surplus: momentOf(p.SurplusSince), failures: uint8(min(p.Retry.Failures, 2)), retry: momentOf(p.Retry.Until), try: uint8(p.Retry.Try),
		lowered: momentOf(p.Lowered.Until), reductions: uint8(min(p.Lowered.Times, 2)),
	}}
	next.replicas, next.record = k.applyNumbers(w, p)
	changed := next.replicas != w.replicas || next.record != w.record || next.memory != w.memory
	of := func(i int) *change { changed = true; w.machines[i].change.pending = true; return &w.machines[i].change }
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.marked && m.busy && !m.leaving() {
			of(i).free, next.frees = true, true
		}
	}
	for _, move := range p.Moves {
		c := of(index(move.Name))
		c.hold, c.free = move.Reserve, !move.Reserve
		next.frees = next.frees || c.free
	}
	for _, priority := range p.Priorities {
		of(index(priority.Name)).priority = uint8(priority.Priority)
	}
	if changed {
		w.plan = next
	}
}

func index(name string) int { return int(name[0] - 'a') }

// writeMachine does the next write of a machine's change.
func (k *walk) writeMachine(w *World, i int) (broken string) {
	m := &w.machines[i]
	switch c := &m.change; {
	case c.free && m.closed && !(m.priority <= reserve.PriorityVictim || m.leaving()):
		m.closed, c.begun = false, true
	case c.hold && !m.closed:
		m.closed, c.begun = true, true
	case c.hold && m.busy && k.Unguarded != GuardEmpty, c.outdated, m.leaving():
		w.plan.failed = true
		m.change = change{}
	default:
		if c.hold && m.busy {
			return "I2: " + name(i) + " is busy and is put into reserve."
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

// complete writes the MachineDeployment, unless machines were released: then the next plan does
// that.
func (k *walk) complete(w *World) string {
	p := w.plan
	w.plan = plan{}
	if (p.replicas != w.replicas || p.record != w.record) && (!p.frees || p.failed) {
		next := *w
		next.replicas, next.record = p.replicas, p.record
		shrinks := k.visible(&next) < k.visible(w)
		if p.outdated || shrinks && max(w.asks, w.asksShown) > p.asked {
			return ""
		}
		w.replicas, w.record, w.reduced = p.replicas, p.record, w.reduced || shrinks
	}
	if w.replicas == p.replicas && w.record == p.record {
		w.memory = p.memory
	}
	return ""
}

// stores adds the steps of machine-controller-manager's stores: each object there is updated some
// time.
func (k *walk) stores() {
	k.machines(func(m *machine) bool { return !m.shown.latest }, func(i int) {
		k.addStep("machine-controller-manager sees "+name(i)+".", func(w *World) string { w.machines[i].updateStore(); return "" })
	})
	k.addStep("machine-controller-manager sees the MachineDeployment.", func(w *World) string { w.deploymentShown = k.visible(w); return "" })
	k.addStep("machine-controller-manager sees the MachineSet.", func(w *World) string { w.asksShown = w.asks; return "" })
}

// cloudSteps adds the steps of the cloud: it creates machines, boots them, gives up unhealthy ones,
// and removes those that are leaving.
func (k *walk) cloudSteps() {
	k.machines(func(m *machine) bool { return m.phase == unmade }, func(i int) {
		k.addStep(name(i)+" is made.", func(w *World) string {
			m := &w.machines[i]
			m.phase, m.failing, m.closed = pending, false, m.marked
			m.newVersion()
			return ""
		})
	})
	become := func(from, to phase, what string) {
		k.machines(func(m *machine) bool { return m.phase == from }, func(i int) {
			k.addStep(name(i)+what, func(w *World) string { w.machines[i].phase = to; w.machines[i].newVersion(); return "" })
		})
	}
	become(pending, running, " is ready.")
	become(unknown, failed, " has been unhealthy for too long.")
	k.machines((*machine).leaving, func(i int) {
		k.addStep(name(i)+" is gone.", func(w *World) string { w.remove(i); return "" })
	})
}

// remove closes the gap that a machine leaves.
func (w *World) remove(i int) {
	copy(w.machines[i:], w.machines[i+1:])
	w.machines[slots-1] = machine{}
}

// timeSteps adds the times that plans wait for.
func (k *walk) timeSteps() {
	if k.from.memory.surplus == ahead {
		k.addStep("Patience with the surplus ends.", func(w *World) string { w.memory.surplus = passed; return "" })
	}
	if k.from.memory.retry == ahead {
		k.addStep("The time to try again comes.", func(w *World) string { w.memory.retry = passed; return "" })
	}
	if k.from.memory.lowered == ahead {
		k.addStep("The time to exceed lowered replicas comes.", func(w *World) string { w.memory.lowered = passed; return "" })
	}
	if k.from.reduced {
		k.addStep("Two minutes pass.", func(w *World) string { w.reduced = false; return "" })
	}
}

// disturb adds what users, pods, the cloud and the process itself may do, but need not.
func (k *walk) disturb() {
	most := 2
	if k.from.record.counted > 0 {
		most = cmp.Or(k.Max, 4)
	}
	k.resize("A user changes replicas", most, func(w *World) *uint8 { return &w.replicas })
	k.resize("A user changes the excess", 2, func(w *World) *uint8 { return &w.excess })
	k.addFault("A user changes the accounting.", func(w *World) { w.inclusive, w.plan.outdated = !w.inclusive, w.plan.pending })
	k.machines(func(m *machine) bool { return m.phase == running && !m.closed && !m.busy }, func(i int) {
		k.addFault("A pod is bound to "+name(i)+".", func(w *World) { w.machines[i].busy = true })
	})
	k.machines(func(m *machine) bool { return m.busy && !m.leaving() }, func(i int) {
		k.addFault("The pods of "+name(i)+" end.", func(w *World) { w.machines[i].busy = false })
	})
	k.machines(func(m *machine) bool { return m.phase == running }, func(i int) {
		k.addFault("The Node of "+name(i)+" is not ready.", func(w *World) { w.machines[i].phase = unknown; w.machines[i].newVersion() })
	})
	k.machines(func(m *machine) bool { return m.phase == unmade && !m.failing }, func(i int) {
		k.addFault(name(i)+" cannot be made.", func(w *World) { w.machines[i].failing = true; w.machines[i].newVersion() })
	})
	k.machines(func(m *machine) bool { return m.change.pending }, func(i int) {
		k.addFault("A write of "+name(i)+" fails.", func(w *World) { w.machines[i].change = change{}; w.plan.failed = true })
	})
	if k.from.plan.pending {
		k.addFault("The write of the MachineDeployment fails.", func(w *World) { w.plan.outdated = true })
	}
	k.addFault("The process is killed, and starts again.", func(w *World) { w.restart(k.visible(w), k.workload(w)) })
}

// resize changes a number of the MachineDeployment by one, within the bounds of the search.
func (k *walk) resize(what string, most int, of func(w *World) *uint8) {
	for _, by := range []int{-1, 1} {
		n := int(*of(&k.from)) + by
		if n < 0 || n > most {
			continue
		}
		k.addFault(fmt.Sprintf("%s to %d.", what, n), func(w *World) {
			*of(w) = uint8(n)
			w.lowest = min(w.lowest, uint8(k.workload(w)))
			w.plan.outdated = w.plan.pending
		})
	}
}

// restart forgets the writes in progress and the memory of the process, and lists everything again.
func (w *World) restart(visible uint8, workload int) {
	w.plan, w.memory, w.reduced, w.resizing, w.creating = plan{}, memory{}, false, 0, 0
	w.deploymentShown, w.asksShown, w.lowest = visible, w.asks, uint8(workload)
	for i := range w.machines {
		if m := &w.machines[i]; m.there {
			m.change, m.chosen, m.excused = change{}, false, false
			m.updateStore()
		}
	}
}
