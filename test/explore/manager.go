// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manager adds the steps of machine-controller-manager. Its decisions depend on what its stores
// show at that moment, and are written later.
func (k *walk) manager() {
	k.resizeSets()
	for s := range k.from.sets {
		if k.from.sets[s].there {
			k.creates(uint8(s))
			k.deletes(uint8(s))
		}
	}
	k.condemns()
}

// resizeSets gives the MachineSets the replicas of the MachineDeployment, and replaces the machines
// of an old one.
func (k *walk) resizeSets() {
	w := &k.from
	if r := w.resizes[0]; r.pending {
		k.addStep("machine-controller-manager writes "+setName(r.set)+".", func(w *World) string { k.resized(w); return "" })
		return
	}
	list := k.sizes.planFor(w.seenSets())
	if len(list) == 0 || k.refusesResize(w, list[0]) || !list[0].fresh && !w.sets[list[0].set].latest() || list[0].fresh && w.sets[list[0].set].there {
		return
	}
	k.addStep("machine-controller-manager decides to resize machine sets.", func(w *World) string { copy(w.resizes[:], list); return "" })
}

// resized writes a MachineSet, unless it has changed or the guard refuses that. Then
// machine-controller-manager begins again.
func (k *walk) resized(w *World) {
	r := w.resizes[0]
	w.resizes[0], w.resizes[1] = w.resizes[1], resize{}
	set := &w.sets[r.set]
	if k.refusesResize(w, r) || !r.fresh && !set.latest() || r.fresh && set.there {
		w.resizes[0] = resize{}
	} else {
		set.there, set.asks, set.total = true, r.asks, r.total
	}
	w.settleLowest()
}

// settleLowest records that no decision for fewer replicas is in progress any more.
func (w *World) settleLowest() {
	if w.resizes[0].pending || !w.sets[0].latest() || !w.sets[1].latest() || w.requestedMachines() < w.visible() {
		return
	}
	for i := range w.machines {
		if w.machines[i].chosen {
			return
		}
	}
	w.lowest = uint8(w.workload())
}

// decided reports whether a MachineSet's last creations and deletions have been seen.
func (w *World) decided(set uint8) bool {
	if w.sets[set].creating > 0 {
		return false
	}
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.set == set && (m.chosen || !m.shown.there || m.leaving() && !m.shown.going) {
			return false
		}
	}
	return true
}

// present returns the machines that machine-controller-manager counts for a MachineSet.
func (w *World) present(set uint8) []int {
	var present []int
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.set == set && m.shown.there && m.shown.phase != terminating {
			present = append(present, i)
		}
	}
	return present
}

func (k *walk) creates(set uint8) {
	w := &k.from
	creating := w.sets[set].creating
	switch missing := int(w.sets[set].asksSeen) - len(w.present(set)); {
	case creating > 0 && w.machines[slots-1].there:
		// The search does not consider more machines.
	case creating > 0:
		k.addFact("machine-controller-manager creates a machine.", func(w *World) string { return k.create(w, set) })
	case missing > 0 && w.decided(set) && !k.superfluous(w):
		k.addStep(fmt.Sprintf("machine-controller-manager decides to create %d machines.", missing), func(w *World) string { w.sets[set].creating = uint8(missing); return "" })
	}
}

// create creates a machine, which serves or is in reserve from the beginning, unless the guard
// refuses that.
func (k *walk) create(w *World, set uint8) (broken string) {
	if k.superfluous(w) {
		w.sets[set].creating = 0
		return ""
	}
	broken = w.crowded()
	w.sets[set].creating--
	m := machine{there: true, priority: 3, set: set}
	if w.record.excess > 0 && !k.plans.planFor(w).bornServing {
		m.marked, m.was = true, true
	}
	broken = cmp.Or(broken, w.misborn(&m))
	n := 0
	for w.machines[n].there {
		n++
	}
	w.machines[n] = m
	return broken
}

func (k *walk) deletes(set uint8) {
	k.machines(func(m *machine) bool { return m.chosen && m.set == set }, func(i int) {
		k.addFact("machine-controller-manager deletes "+name(i)+".", func(w *World) string { return k.remove(w, i) })
	})
	w := &k.from
	if !w.decided(set) {
		return
	}
	chosen := w.tooMany(set)
	if !slices.ContainsFunc(chosen, func(i int) bool { return !k.refuses(w, i) }) {
		return
	}
	k.addStep(fmt.Sprintf("machine-controller-manager decides to delete %d machines.", len(chosen)), func(w *World) string {
		for _, i := range chosen {
			m := &w.machines[i]
			m.chosen, m.excused = true, w.wronged(i) == ""
		}
		return ""
	})
}

// tooMany returns the machines of a MachineSet that machine-controller-manager decides to delete:
// those beyond the number that it requests, in its own order, failed ones, and named ones.
func (w *World) tooMany(set uint8) []int {
	present := w.present(set)
	n := max(0, len(present)-int(w.sets[set].asksSeen))
	order := deletedFirst(w, present)
	chosen := order[:n:n]
	for _, i := range order[n:] {
		m := &w.machines[i].shown
		if m.phase == failed && !m.preserved || m.condemned && m.due {
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// remove deletes a machine, unless a guard refuses that.
func (k *walk) remove(w *World, i int) (broken string) {
	m := &w.machines[i]
	defer w.settleLowest()
	defer func() { w.machines[i].chosen, w.machines[i].excused = false, false }()
	if m.leaving() || k.refuses(w, i) {
		return ""
	}
	if broken := w.wronged(i); broken != "" {
		return broken
	}
	m.phase, m.change, m.preserved = terminating, change{}, false
	m.newVersion()
	return ""
}

// condemns gives the machines that the MachineDeployment names the lowest priority.
func (k *walk) condemns() {
	k.machines(func(m *machine) bool {
		return m.shown.named && m.shown.latest && !m.condemned && !m.leaving() && m.phase != failed
	}, func(i int) {
		k.addFact("machine-controller-manager gives the named "+name(i)+" priority 1.", func(w *World) string {
			m := &w.machines[i]
			m.condemned, m.priority = true, 1
			m.newVersion()
			return ""
		})
	})
}

// deletedFirst sorts machines as machine-controller-manager does, by what its store shows.
func deletedFirst(w *World, among []int) []int {
	machines := make([]*mcm.Machine, len(among))
	for k, i := range among {
		shown := &w.machines[i].shown
		m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), CreationTimestamp: metav1.NewTime(now.Add(time.Duration(i) * time.Minute)),
			Annotations: map[string]string{machineutils.MachinePriority: strconv.Itoa(int(shown.priority))}}}
		if shown.condemned {
			m.Annotations[machineutils.MarkedForDeletionTime] = earlier.Format(time.RFC3339)
		}
		if shown.preserved {
			m.Status.CurrentStatus.PreserveExpiryTime = &preservedUntil
		}
		m.Status.CurrentStatus.Phase = phases[shown.phase]
		machines[k] = m
	}
	sort.Sort(stock.ActiveMachines(machines))
	order := make([]int, len(machines))
	for k, m := range machines {
		order[k], _ = strconv.Atoi(m.Name)
	}
	return order
}
