// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"sort"
	"strconv"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"

	"github.com/evenkeel/evenkeel/pkg/pool"
	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// workload is how many machines of a MachineDeployment may serve, and excess how many are kept in
// reserve besides.
func (z *zone) workload() int {
	return int(pool.Workload(z.object(0, 1, never), int32(z.replicas)))
}

func (z *zone) excess() int { return max(0, min(int(z.share), int(z.limit)-z.workload())) }

// machineSteps adds the machine-taint controller, machine-controller-manager and the cloud.
func (k *moveWalk) machineSteps(i int) {
	actor := ofZones + Actor(i)
	w := &k.from
	v := w.reserveView(i)
	if moves := reserve.NewPlan(v).Moves; len(moves) > 0 {
		at, held := unitIndex(moves[0].Name), moves[0].Reserve
		what := map[bool]string{false: moves[0].Name + " is released.", true: moves[0].Name + " is put into reserve."}
		k.addStep(actor, what[held], func(w *MoveWorld) string { w.units[i][at].marked = held; return "" })
	}
	if at := w.freeSlot(i); at >= 0 && w.present(i) < v.Replicas+v.Applied.Excess {
		k.addStep(actor, "machine-controller-manager creates "+unitName(i, at)+".", func(w *MoveWorld) string {
			w.units[i][at] = unit{there: true, phase: pending, marked: !reserve.ServesOnCreation(v, 0)}
			return ""
		})
	}
	if at := w.deletedNext(i, v); at >= 0 {
		k.addStep(actor, "machine-controller-manager deletes "+unitName(i, at)+".", func(w *MoveWorld) string { return w.delete(i, at) })
	}
	for at := range w.units[i] {
		k.unitSteps(i, at)
	}
}

// unitSteps adds what happens to one machine.
func (k *moveWalk) unitSteps(i, at int) {
	actor, u, what := ofZones+Actor(i), k.from.units[i][at], unitName(i, at)
	switch {
	case u.there && u.phase == pending:
		k.addStep(actor, what+" is ready.", func(w *MoveWorld) string {
			w.units[i][at].phase, w.units[i][at].fresh = running, w.troubles[i].failures > 0
			return ""
		})
	case u.there && u.phase == failed:
		k.addStep(actor, what+" can be created.", func(w *MoveWorld) string { w.units[i][at].phase, w.turned = pending, unturned; return "" })
	case u.there && u.phase == terminating:
		k.addStep(actor, what+" is gone.", func(w *MoveWorld) string { w.units[i][at] = unit{}; return "" })
	}
	if k.from.zones[i].names[at] != unnamed && !u.stays() {
		k.addStep(actor, "machine-controller-manager removes the name "+what+".", func(w *MoveWorld) string {
			to := w.zones[i]
			to.names[at] = unnamed
			w.change(i, to)
			return ""
		})
	}
}

// present is how many machines machine-controller-manager counts.
func (w *MoveWorld) present(i int) (n int) {
	for at := range w.units[i] {
		if w.units[i][at].stays() {
			n++
		}
	}
	return n
}

// freeSlot returns a place for the next machine, after all others; below 0 if there is none.
func (w *MoveWorld) freeSlot(i int) int {
	for at := zoneSlots - 1; at >= 0; at-- {
		if w.units[i][at].there || w.shownUnits[i][at].there || w.zones[i].names[at] != unnamed {
			return map[bool]int{true: at + 1, false: -1}[at+1 < zoneSlots]
		}
	}
	return 0
}

// deletedNext returns the machine that machine-controller-manager deletes next, in its own order;
// below 0 if there is none. One that serves is deleted only if it is named, or more than R serve.
func (w *MoveWorld) deletedNext(i int, v reserve.View) int {
	var all []*mcm.Machine
	spare, serving := 0, 0
	for at := range w.units[i] {
		switch u := &w.units[i][at]; {
		case !u.stays():
			continue
		case w.zones[i].names[at] == due:
			return at
		case u.marked:
			spare++
		case w.zones[i].names[at] == unnamed:
			serving++
		}
		all = append(all, w.units[i][at].object(i, at))
	}
	if len(all) <= v.Replicas+v.Applied.Excess {
		return -1
	}
	for _, m := range all {
		u := &w.units[i][unitIndex(m.Name)]
		priority := reserve.PriorityServing
		switch {
		case w.zones[i].names[unitIndex(m.Name)] != unnamed:
			priority = 1
			m.Annotations[machineutils.MarkedForDeletionTime] = longAgo.Format(time.RFC3339)
		case u.marked && spare > v.Applied.Excess:
			priority = reserve.PriorityVictim
		case u.marked:
			priority = reserve.PriorityReserve
		}
		m.Annotations[machineutils.MachinePriority] = strconv.Itoa(priority)
	}
	sort.Sort(stock.ActiveMachines(all))
	at := unitIndex(all[0].Name)
	if !w.units[i][at].marked && w.zones[i].names[at] == unnamed && serving <= v.Replicas {
		return -1
	}
	return at
}

// delete deletes a machine.
func (w *MoveWorld) delete(i, at int) string {
	w.units[i][at].phase, w.units[i][at].pinned = terminating, false
	return ""
}

// reserveView returns the machines as the rule of the reserve sees them.
func (w *MoveWorld) reserveView(i int) reserve.View {
	z := &w.zones[i]
	n, excess := z.workload(), z.excess()
	v := reserve.View{Now: now, Replicas: n, Wish: excess, Excess: excess, Max: max(n, int(z.limit)), CurrentSet: setName(0), Patience: time.Hour,
		Applied: reserve.Applied{Excess: excess, Max: max(n, int(z.limit))}, SetReplicas: n + excess, MaxSetReplicas: n + excess}
	for at := range w.units[i] {
		u := &w.units[i][at]
		if !u.there {
			continue
		}
		m := reserve.Machine{Name: unitName(i, at), Created: longAgo.Add(time.Duration(at) * time.Minute), Set: setName(0), Phase: phases[u.phase], Reserve: u.marked,
			HasProviderID: u.phase != failed, Registered: u.phase == running, Named: z.names[at] != unnamed, Deleted: u.phase == terminating,
			Priority: reserve.PriorityServing, SeenPriority: reserve.PriorityServing, Returned: true}
		if u.phase == failed {
			m.Phase, m.Failing = mcm.MachineCrashLoopBackOff, true
		}
		if u.pinned {
			m.Pods, m.Pinned = 1, pool.NotSafeToEvict
		}
		v.Machines = append(v.Machines, m)
	}
	return v
}

// ownerFaults adds what autoscalers and users do with a MachineDeployment. An autoscaler asks the
// node groups' server.
func (k *moveWalk) ownerFaults(i int) {
	z := k.from.zones[i]
	d := z.object(i, 1, k.from.overdue[i])
	if g, err := nodegroupplan.NewGroup(d); err == nil {
		if c, err := nodegroupplan.NewRaise(g, g.Replicas(), 1); err == nil && k.from.total() < k.Most {
			k.changeByGroup(i, "An autoscaler raises "+name(i)+" by 1.", c)
		}
		k.changeByGroup(i, "An autoscaler withdraws a machine of "+name(i)+".", nodegroupplan.NewWithdrawal(g, k.from.members(i), -1))
		for at := range k.from.units[i] {
			if u := &k.from.units[i][at]; u.serves() && !u.pinned && z.names[at] == unnamed {
				if c, err := nodegroupplan.NewRemoval(g, k.from.members(i), false, map[string]bool{unitName(i, at): true}, now); err == nil {
					k.changeByGroup(i, "An autoscaler removes "+unitName(i, at)+".", c)
				}
			}
		}
	}
	for _, n := range []int{0, int(z.replicas) - 1, int(z.replicas) + 1} {
		to := z
		if to.replicas = uint8(n); n >= 0 && to != z && k.from.total()-int(z.replicas)+n <= k.Most {
			k.changeZone(i, fmt.Sprintf("A user changes replicas of %s to %d.", name(i), n), to)
		}
	}
	for limit := uint8(1); k.Bounds && int(limit) <= k.Max+1; limit++ {
		to := z
		if to.limit = limit; to != z {
			k.changeZone(i, fmt.Sprintf("A user changes the max of %s to %d.", name(i), limit), to)
		}
	}
	if i == 0 && k.Pool > 0 {
		k.addFault("A user changes the excess of the pool.", func(w *MoveWorld) string {
			next := 1 - min(1, z.pool)
			for j := range zones {
				to := w.zones[j]
				to.pool = next
				w.change(j, to)
			}
			return ""
		})
	}
}

func (w *MoveWorld) total() int { return int(w.zones[0].replicas + w.zones[1].replicas) }

// members returns the machines of a MachineDeployment as the node groups' server sees them.
func (w *MoveWorld) members(i int) (all []nodegroupplan.Member) {
	for at := range w.units[i] {
		if u := &w.units[i][at]; u.there {
			all = append(all, nodegroupplan.Member{Machine: u.member(i, at, w.zones[i].names[at]).Machine})
		}
	}
	return all
}

// changeByGroup adds a change by the node groups' server.
func (k *moveWalk) changeByGroup(i int, what string, c nodegroupplan.Change) {
	if c.IsEmpty() {
		return
	}
	d := k.from.zones[i].object(i, 1, k.from.overdue[i])
	d.Spec.Replicas = c.Replicas
	for key, value := range c.Annotations {
		d.Annotations[key] = value
	}
	k.changeZone(i, what, zoneOf(d))
}

// changeZone adds a change by an owner. What an owner takes from a MachineDeployment that gives
// replicas away may be among those.
func (k *moveWalk) changeZone(i int, what string, to zone) {
	k.addFault(what, func(w *MoveWorld) string {
		was := w.zones[i]
		fewer := was.replicas - min(was.replicas, to.replicas)
		w.owed += to.replicas - min(was.replicas, to.replicas)
		w.owed -= min(w.owed, fewer) // a replica that is in two places is owed once
		if was.move.gives {
			w.slack += min(fewer, was.move.machines)
		}
		w.noteNames(i, to)
		w.change(i, to)
		return ""
	})
}

// machineFaults adds what happens to machines and their pods.
func (k *moveWalk) machineFaults(i int) {
	for at := range k.from.units[i] {
		u, what := k.from.units[i][at], unitName(i, at)
		if u.there && u.phase == pending {
			k.addFault(what+" cannot be created.", func(w *MoveWorld) string { w.units[i][at].phase = failed; return "" })
		}
		if u.there && u.phase == running {
			k.addFault(what+" fails, and is deleted.", func(w *MoveWorld) string { return w.delete(i, at) })
		}
		if k.Pins && u.serves() && !u.pinned {
			k.addFault("A pod that must not be evicted is bound to "+what+".", func(w *MoveWorld) string { w.units[i][at].pinned = true; return "" })
		}
		if u.pinned {
			k.addFault("The pod of "+what+" ends.", func(w *MoveWorld) string { w.units[i][at].pinned = false; return "" })
		}
	}
}
