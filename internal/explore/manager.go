// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// manager adds the steps of machine-controller-manager. Its decisions depend on what its stores
// show at that moment, and are written later.
func (k *walk) manager() {
	k.resizes()
	k.creates()
	k.deletes()
}

// resizes decides to give the MachineSet the replicas of the MachineDeployment.
func (k *walk) resizes() {
	switch w := &k.from; {
	case w.resizing > 0:
		k.addStep("machine-controller-manager writes the MachineSet.", func(w *World) string { k.resized(w); return "" })
	case w.deploymentShown != w.asksShown && w.asksShown == w.asks && !k.refusesResize(w, w.deploymentShown):
		k.addStep("machine-controller-manager decides to resize the MachineSet.", func(w *World) string { w.resizing = w.deploymentShown + 1; return "" })
	}
}

// resized writes the MachineSet, unless the guard refuses that.
func (k *walk) resized(w *World) {
	total := w.resizing - 1
	w.resizing = 0
	if !k.refusesResize(w, total) {
		w.asks = total
	}
	k.settleLowest(w)
}

// refusesResize is the guard of resizes. If nothing changes, its answer stays the same.
func (k *walk) refusesResize(w *World, total uint8) bool {
	visible := k.visible(w)
	if total > w.asksShown {
		return w.reduced && total > visible
	}
	return w.record.excess > 0 && total < visible
}

// settleLowest records that no decision for fewer replicas is in progress any more.
func (k *walk) settleLowest(w *World) {
	if w.resizing > 0 || w.asks != w.asksShown {
		return
	}
	for i := range w.machines {
		if w.machines[i].chosen {
			return
		}
	}
	w.lowest = uint8(k.workload(w))
}

// decided reports whether the MachineSet's last creations and deletions have been seen.
func (w *World) decided() bool {
	if w.creating > 0 {
		return false
	}
	for i := range w.machines {
		if m := &w.machines[i]; m.there && (m.chosen || !m.shown.there || m.leaving() && !m.shown.going) {
			return false
		}
	}
	return true
}

// present returns the machines that machine-controller-manager counts.
func (w *World) present() []int {
	var present []int
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.shown.there && m.shown.phase != terminating {
			present = append(present, i)
		}
	}
	return present
}

func (k *walk) creates() {
	w := &k.from
	switch missing := int(w.asksShown) - len(w.present()); {
	case w.creating > 0 && w.machines[slots-1].there:
		// The search does not consider more machines.
	case w.creating > 0:
		k.addStep("machine-controller-manager creates a machine.", func(w *World) string { return k.create(w) })
	case missing > 0 && w.decided():
		k.addStep(fmt.Sprintf("machine-controller-manager decides to create %d machines.", missing), func(w *World) string { w.creating = uint8(missing); return "" })
	}
}

// create creates a machine, which serves or is in reserve from the beginning.
func (k *walk) create(w *World) (broken string) {
	w.creating--
	m := machine{there: true, priority: reserve.PriorityServing}
	if w.record.excess > 0 && !reserve.ServesOnCreation(k.viewOf(w).Machines, 0, k.workload(w)) {
		m.marked, m.was = true, true
	}
	n, staying := 0, 1
	for w.machines[n].there {
		if !w.machines[n].leaving() {
			staying++
		}
		n++
	}
	w.machines[n] = m
	if k.Max > 0 && staying > k.Max {
		return fmt.Sprintf("I1: There are %d machines that stay, and the maximum is %d.", staying, k.Max)
	}
	return ""
}

func (k *walk) deletes() {
	k.machines(func(m *machine) bool { return m.chosen }, func(i int) {
		k.addStep("machine-controller-manager deletes "+name(i)+".", func(w *World) string { return k.remove(w, i) })
	})
	w := &k.from
	if !w.decided() {
		return
	}
	chosen := w.tooMany()
	if !slices.ContainsFunc(chosen, func(i int) bool { return !k.refuses(w, i) }) {
		return
	}
	k.addStep(fmt.Sprintf("machine-controller-manager decides to delete %d machines.", len(chosen)), func(w *World) string {
		for _, i := range chosen {
			m := &w.machines[i]
			m.chosen, m.excused = true, k.wronged(w, i) == ""
		}
		return ""
	})
}

// tooMany returns the machines that machine-controller-manager decides to delete: those beyond the
// number that the MachineSet requests, in its own order, and failed ones.
func (w *World) tooMany() []int {
	present := w.present()
	n := max(0, len(present)-int(w.asksShown))
	order := deletedFirst(w, present)
	chosen := order[:n:n]
	for _, i := range order[n:] {
		if w.machines[i].shown.phase == failed {
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// remove deletes a machine, unless a guard refuses that.
func (k *walk) remove(w *World, i int) (broken string) {
	m := &w.machines[i]
	defer k.settleLowest(w)
	defer func() { w.machines[i].chosen, w.machines[i].excused = false, false }()
	if m.leaving() || k.refuses(w, i) {
		return ""
	}
	if broken := k.wronged(w, i); broken != "" {
		return broken
	}
	m.phase, m.change = terminating, change{}
	m.newVersion()
	return ""
}

// refuses is the guard of deletions.
func (k *walk) refuses(w *World, i int) bool {
	m := &w.machines[i]
	if m.shown.phase == failed {
		return false
	}
	present, serving, spare := 0, 0, 0
	for j := range w.machines {
		if other := &w.machines[j]; other.there && other.shown.there && !other.leaving() {
			present++
			if other.marked {
				spare++
			} else {
				serving++
			}
		}
	}
	visible := k.visible(w)
	switch {
	case k.Unguarded == GuardRemove:
		return false
	case m.change.begun && m.change.free:
		return true
	case w.record.excess > 0 || m.was:
		lags := w.record.excess > 0 && w.asksShown > 0 && w.asksShown < visible
		outdated := !m.shown.latest
		needed := k.Unguarded != GuardNeeded && !m.marked && spare > 0 && serving <= k.workload(w)
		return present <= int(w.asksShown) || lags || outdated || needed
	}
	return spare > 0 && w.asksShown > 0
}

// unhealthy reports whether the machine no longer works.
func (m *machine) unhealthy() bool { return m.phase == unknown || m.phase == failed }

// wronged returns the law that the deletion of a machine breaks: no busy machine is deleted in
// favor of a reserve machine. A deletion that was right when it was decided may be carried out
// late.
func (k *walk) wronged(w *World, i int) string {
	m := &w.machines[i]
	if !m.busy || m.unhealthy() || m.excused {
		return ""
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
	workload := k.workload(w)
	if serving > min(int(w.lowest), workload) || spare == 0 {
		return ""
	}
	return fmt.Sprintf("I3: %s is busy and is deleted, though %d are in reserve and %d serve of %d.", name(i), spare, serving, workload)
}
