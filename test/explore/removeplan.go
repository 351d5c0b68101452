// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"

	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// knownGroup is what the node groups' server decides from.
type knownGroup struct {
	is     sized
	units  [zoneSlots]unit
	recent [zoneSlots]bool
	// gone reports whether the machine of the call no longer exists.
	gone  bool
	clock uint8
	call  call
}

// removePlan is a decision of the server.
type removePlan struct {
	next         sized
	idle, failed bool
}

// removePlans remembers decisions.
type removePlans struct {
	mu  sync.RWMutex
	all map[knownGroup]removePlan
}

func newRemovePlans() *removePlans { return &removePlans{all: map[knownGroup]removePlan{}} }

func (p *removePlans) planFor(in knownGroup, m *Removals) removePlan {
	p.mu.RLock()
	made, known := p.all[in]
	p.mu.RUnlock()
	if known {
		return made
	}
	made = in.decide(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[in] = made
	return made
}

// decide makes a decision.
func (k knownGroup) decide(m *Removals) removePlan {
	d := k.is.object(m.Min, m.Max)
	g, err := nodegroupplan.NewGroup(d)
	if err != nil {
		return removePlan{failed: true}
	}
	var c nodegroupplan.Change
	if k.call.kind == removal {
		going := map[string]bool{unitName(0, int(k.call.machine)-1): true}
		c, err = nodegroupplan.NewRemoval(g, k.members(), false, going, instant(k.clock))
	} else {
		c = nodegroupplan.NewWithdrawal(g, k.members(), -int32(k.call.delta))
	}
	return removePlan{next: changed(k.is, c, m), idle: c.IsEmpty(), failed: err != nil}
}

// changed returns a MachineDeployment after a change.
func changed(is sized, c nodegroupplan.Change, m *Removals) sized {
	d := is.object(m.Min, m.Max)
	if c.From != c.To {
		d.Spec.Replicas = c.Replicas
	}
	for key, text := range c.Annotations {
		if d.Annotations[key] = text; text == "" {
			delete(d.Annotations, key)
		}
	}
	return sizedOf(d)
}

// members returns the machines of the group, as far as the server knows them.
func (k *knownGroup) members() (all []nodegroupplan.Member) {
	for at := range k.units {
		u := &k.units[at]
		isRemoved := int(k.call.machine) == at+1
		if !u.there && !isRemoved {
			continue
		}
		n := unnamed
		if k.is.named[at] > 0 {
			n = named
		}
		one := nodegroupplan.Member{Machine: u.member(0, at, n).Machine, Gone: k.recent[at] || isRemoved && k.gone}
		all = append(all, one)
	}
	return all
}

// machineSteps adds the machine-taint controller, machine-controller-manager and the cloud, the
// reminders of the server, and what splits growth over zones.
func (k *removeWalk) machineSteps() {
	w := &k.from
	v := k.reserveView(w)
	if moves := reserve.NewPlan(v).Moves; len(moves) > 0 {
		at, held := unitIndex(moves[0].Name), moves[0].Reserve
		what := map[bool]string{false: " is released.", true: " is put into reserve."}
		k.addStep(makers, moves[0].Name+what[held], func(w *RemovalWorld) string { w.units[at].marked = held; return "" })
	}
	wanted, present := v.Replicas+v.Applied.Excess, 0
	last := -1
	for at := range w.units {
		if w.units[at].stays() {
			present++
		}
		if w.units[at].there || w.shownUnits[at].there || w.isNamed(at) || int(w.call.machine) == at+1 {
			last = at
		}
	}
	deleted := k.deletedNext(w, v, present > wanted)
	for at := range w.units {
		k.unitStep(at, deleted < 0)
	}
	if at := last + 1; at < zoneSlots && present < wanted {
		k.addStep(makers, "machine-controller-manager creates "+unitName(0, at)+".", func(w *RemovalWorld) string {
			w.units[at] = unit{there: true, phase: pending, marked: !reserve.ServesOnCreation(v, 0), fresh: w.call.decided}
			return ""
		})
	}
	if at := deleted; at >= 0 {
		k.addStep(makers, "machine-controller-manager deletes "+unitName(0, at)+".", func(w *RemovalWorld) string { return k.delete(w, at) })
	}
	k.remind()
	if w.is.applied != w.is.replicas {
		k.addStep(splitter, "Growth is applied.", func(w *RemovalWorld) string {
			to := w.is
			to.applied = to.replicas
			w.change(to)
			return ""
		})
	}
}

// unitStep adds what happens to one machine. Before one is ready, a call that was decided before it
// was created ends, and machine-controller-manager deletes what it has to: both take seconds.
func (k *removeWalk) unitStep(at int, boots bool) {
	u, what := k.from.units[at], unitName(0, at)
	switch {
	case u.there && u.phase == pending && boots && !u.fresh:
		k.addStep(makers, what+" is ready.", func(w *RemovalWorld) string { w.units[at].phase = running; return "" })
	case u.there && u.phase == terminating:
		k.addStep(makers, what+" is gone.", func(w *RemovalWorld) string { w.units[at] = unit{}; return "" })
	}
	if k.from.is.named[at] > 0 && !u.stays() {
		k.addStep(makers, "machine-controller-manager removes the name "+what+".", func(w *RemovalWorld) string {
			to := w.is
			to.named[at] = 0
			w.change(to)
			return ""
		})
	}
}

// deletedNext returns the machine that machine-controller-manager deletes next, in its own order;
// below 0 if there is none.
func (k *removeWalk) deletedNext(w *RemovalWorld, v reserve.View, tooMany bool) int {
	var all []*mcm.Machine
	spare := 0
	for at := range w.units {
		u := &w.units[at]
		if !u.stays() {
			continue
		}
		if w.is.isDue(at) {
			return at
		}
		if u.marked {
			spare++
		}
		o := u.object(0, at)
		o.Annotations[machineutils.MachinePriority] = strconv.Itoa(reserve.PriorityServing)
		if u.marked {
			o.Annotations[machineutils.MachinePriority] = strconv.Itoa(reserve.PriorityReserve)
		}
		if w.is.named[at] > 0 {
			o.Annotations[machineutils.MachinePriority] = "1"
			o.Annotations[machineutils.MarkedForDeletionTime] = longAgo.Format(time.RFC3339)
		}
		all = append(all, o)
	}
	if !tooMany {
		return -1
	}
	for _, o := range all {
		if u := &w.units[unitIndex(o.Name)]; u.marked && spare > v.Applied.Excess && o.Annotations[machineutils.MachinePriority] != "1" {
			o.Annotations[machineutils.MachinePriority] = strconv.Itoa(reserve.PriorityVictim)
		}
	}
	sort.Sort(stock.ActiveMachines(all))
	return unitIndex(all[0].Name)
}

// delete deletes a machine, and returns the law that this breaks: machines that no client removed
// stay.
func (k *removeWalk) delete(w *RemovalWorld, at int) (broken string) {
	if u := &w.units[at]; u.serves() && w.is.named[at] == 0 && !w.excused {
		broken = fmt.Sprintf("N8: %s serves and is deleted, though nobody removed it.", unitName(0, at))
	}
	w.units[at].phase = terminating
	return broken
}

// remind adds that the server repeats the deletion of machines that should be gone.
func (k *removeWalk) remind() {
	known := k.from.newest()
	g, err := nodegroupplan.NewGroup(known.object(k.Min, k.Max))
	if err != nil || !k.from.current || k.Unguarded == RemindNames {
		return
	}
	there := map[string]bool{}
	for at := range k.from.shownUnits {
		if u := &k.from.shownUnits[at]; u.there && u.phase != terminating {
			there[unitName(0, at)] = true
		}
	}
	if c := nodegroupplan.NewReminder(g, there, instant(k.from.clock)); !c.IsEmpty() {
		k.addStep(serving, "The server repeats the deletion of machines.", func(w *RemovalWorld) string {
			w.change(changed(w.is, c, k.Removals))
			w.record()
			return ""
		})
	}
}

// reserveView returns the machines as the rule of the reserve sees them.
func (k *removeWalk) reserveView(w *RemovalWorld) reserve.View {
	n, excess := int(min(w.is.replicas, w.is.applied)), k.excess(w)
	v := reserve.View{Now: now, Replicas: n, Wish: k.Spare, Excess: excess, Max: max(n, k.Max), CurrentSet: setName(0), Patience: time.Hour,
		Applied: reserve.Applied{Excess: excess, Max: max(n, k.Max)}, SetReplicas: n + excess, MaxSetReplicas: n + excess}
	for at := range w.units {
		if u := &w.units[at]; u.there {
			v.Machines = append(v.Machines, reserve.Machine{Name: unitName(0, at), Created: longAgo.Add(time.Duration(at) * time.Minute), Set: setName(0), Phase: phases[u.phase],
				Reserve: u.marked, HasProviderID: true, Registered: u.phase == running, Named: w.is.named[at] > 0, Deleted: u.phase == terminating, Returned: true,
				Priority: reserve.PriorityServing, SeenPriority: reserve.PriorityServing})
		}
	}
	return v
}
