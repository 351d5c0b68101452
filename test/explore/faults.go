// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
)

// cloudSteps adds the steps of the cloud: it creates machines, boots them, gives up unhealthy ones
// or sees them recover, and removes those that are leaving.
func (k *walk) cloudSteps() {
	k.machines(func(m *machine) bool { return m.phase == unmade }, func(i int) {
		k.addFact(name(i)+" is made.", func(w *World) string {
			m := &w.machines[i]
			m.phase, m.failing, m.paid, m.closed = pending, false, false, m.marked
			m.newVersion()
			return ""
		})
	})
	become := func(from, to phase, what string) {
		k.machines(func(m *machine) bool { return m.phase == from }, func(i int) {
			k.addFact(name(i)+what, func(w *World) string { w.machines[i].phase = to; w.machines[i].newVersion(); return "" })
		})
	}
	become(pending, running, " is ready.")
	become(unknown, failed, " has been unhealthy for too long.")
	become(unknown, running, " recovers.")
	k.machines((*machine).leaving, func(i int) {
		k.addFact(name(i)+" is gone.", func(w *World) string { w.remove(i); return "" })
	})
}

// timeSteps adds the times that plans wait for.
func (k *walk) timeSteps() {
	if k.from.memory.surplus == ahead {
		k.addFact("Patience with the surplus ends.", func(w *World) string { w.memory.surplus = passed; return "" })
	}
	if k.from.memory.retry == ahead {
		k.addFact("The time to try again comes.", func(w *World) string {
			w.memory.retry = passed
			for i := range w.machines {
				w.machines[i].paid = false
			}
			return ""
		})
	}
	if k.from.memory.lowered == ahead {
		k.addFact("The time to exceed lowered replicas comes.", func(w *World) string { w.memory.lowered = passed; return "" })
	}
	if k.from.reduced {
		k.addFact("Two minutes pass.", func(w *World) string { w.reduced = false; return "" })
	}
	k.machines(func(m *machine) bool { return m.preserved }, func(i int) {
		k.addFact(name(i)+" is preserved no longer.", func(w *World) string { w.machines[i].preserved = false; w.machines[i].newVersion(); return "" })
	})
	k.machines(func(m *machine) bool { return m.named && !m.due && !m.leaving() }, func(i int) {
		k.addFact("The autoscaler's server repeats the deletion of "+name(i)+".", func(w *World) string {
			w.machines[i].due = true
			w.plan.outdated = w.plan.pending
			return ""
		})
	})
}

// disturb adds what users, pods, the cloud and the process itself may do, but need not.
func (k *walk) disturb() {
	k.userFaults()
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
	k.addFault("The process is killed, and starts again.", func(w *World) { w.restart() })
	k.machines(func(m *machine) bool { return m.busy && !m.leaving() }, func(i int) {
		k.addFault("The pods of "+name(i)+" end.", func(w *World) { w.machines[i].busy = false })
	})
	k.machines(func(m *machine) bool { return m.phase == running && !m.closed && !m.busy }, func(i int) {
		k.addFault("A pod is bound to "+name(i)+".", func(w *World) { w.machines[i].busy = true })
	})
	k.scalerFaults()
}

func (k *walk) userFaults() {
	most := k.Sizes[0]
	if k.from.record.counted > 0 {
		most = cmp.Or(k.Max, k.Sizes[0]+k.Sizes[1])
		if k.Beyond {
			most++
		}
	}
	k.changeNumber("A user changes replicas", 0, most, func(w *World) *uint8 { return &w.replicas })
	k.changeNumber("A user changes the excess", 0, k.Sizes[1], func(w *World) *uint8 { return &w.excess })
	k.changeDeployment("A user changes the accounting.", func(w *World) { w.inclusive = !w.inclusive })
	if k.Rollouts && k.from.sets[1-k.from.template].there == k.from.sets[1-k.from.template].seen {
		k.changeDeployment("A user changes the template.", func(w *World) { w.template = 1 - w.template })
	}
	if k.Bounds && k.Max > 0 {
		k.changeNumber("A user changes the maximum", 1, k.Max+1, func(w *World) *uint8 { return &w.max })
		k.changeDeployment("A user changes whether the bounds can be parsed.", func(w *World) { w.unparsed = !w.unparsed })
	}
	if k.Preserve {
		k.machines(func(m *machine) bool { return m.phase > pending && !m.leaving() && !m.preserved && !m.named }, func(i int) {
			k.addFault("A user preserves "+name(i)+".", func(w *World) { w.machines[i].preserved = true; w.machines[i].newVersion() })
		})
	}
}

// changeDeployment adds a change of the MachineDeployment by a user.
func (k *walk) changeDeployment(what string, do func(w *World)) {
	k.addFault(what, func(w *World) {
		do(w)
		w.lowest = min(w.lowest, uint8(w.workload()))
		w.plan.outdated = w.plan.pending
	})
}

// changeNumber changes a number of the MachineDeployment by one, within the bounds of the search.
func (k *walk) changeNumber(what string, least, most int, of func(w *World) *uint8) {
	for _, by := range []int{-1, 1} {
		if n := int(*of(&k.from)) + by; n >= least && n <= most {
			k.changeDeployment(fmt.Sprintf("%s to %d.", what, n), func(w *World) { *of(w) = uint8(n) })
		}
	}
}
