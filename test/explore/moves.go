// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// Moves models how replicas and shares of a pool's excess move between two zones: the plan of the
// balance controller, carried out write by write, with late stores, beside what creates, marks and
// deletes machines, and autoscalers, users and clouds that can do anything.
type Moves struct {
	// Continuous reports whether replicas are kept even, and not only growth split.
	Continuous bool
	// Max is the max of each MachineDeployment at the beginning, and OtherMax that of the second
	// one if it differs. Pool is the excess of the pool, and Most how many replicas there are at
	// most in total.
	Max, OtherMax, Pool, Most int
	// Bounds and Pins add faults: users change the max, or pods come that must not be evicted.
	Bounds, Pins bool
	// Promised begins with a replica that one has promised to another, which has no room for it.
	Promised bool
	// Faults is the maximum number of faults in one story.
	Faults int
	// Unguarded disables a guard, to see what it prevents.
	Unguarded Guard

	plans *memo[knownZones, *rebalance]
	turns *memo[knownZone, turn]
}

// NewMoves returns the model with its memory.
func NewMoves(m Moves) *Moves {
	m.plans, m.turns = &memo[knownZones, *rebalance]{}, &memo[knownZone, turn]{}
	return &m
}

// Begin returns settled worlds.
func (m *Moves) Begin() (all []MoveWorld) {
	if m.Promised {
		return []MoveWorld{promised(uint8(m.Faults))}
	}
	for a := range uint8(3) {
		for b := range uint8(3) {
			limits := [zones]uint8{uint8(m.Max), uint8(cmp.Or(m.OtherMax, m.Max))}
			if even := a <= b+1 && b <= a+1 || m.OtherMax > 0 && b == limits[1]; even && b <= limits[1] && int(a+b) <= m.Most-1 {
				all = append(all, settledZones([zones]uint8{a, b}, limits, uint8(m.Pool), uint8(m.Faults)))
			}
		}
	}
	return all
}

// Actors of this model. Each MachineDeployment has its own for its machines.
const (
	balancing Actor = 1 + iota
	zonesStore
	unitsStore
	ofZones
)

// moveWalk collects the steps from one world.
type moveWalk struct {
	*Moves
	from  MoveWorld
	steps []Step[MoveWorld]
}

// Steps returns everything that can happen next. Steps that wait for time to pass happen only if
// nothing else is left.
func (m *Moves) Steps(w MoveWorld) []Step[MoveWorld] {
	k := &moveWalk{Moves: m, from: w, steps: make([]Step[MoveWorld], 0, 24)}
	k.controllerSteps()
	k.storeSteps()
	for i := range zones {
		k.machineSteps(i)
	}
	if k.onlyFaultsLeft() {
		k.timeSteps()
	}
	if w.faults > 0 {
		k.writeFaults()
		for i := range zones {
			k.ownerFaults(i)
			k.machineFaults(i)
		}
	}
	return k.steps
}

func (k *moveWalk) onlyFaultsLeft() bool {
	for _, step := range k.steps {
		if step.To != k.from {
			return false
		}
	}
	return true
}

// addStep adds a step that its actor takes sooner or later. do returns the law that it breaks.
func (k *moveWalk) addStep(actor Actor, what string, do func(w *MoveWorld) (broken string)) {
	w := k.from
	broken := do(&w)
	if broken == "" {
		broken = w.misbalanced()
	}
	w.forget()
	k.steps = append(k.steps, Step[MoveWorld]{What: what, To: w, Broken: broken, Actor: actor})
}

// addFault adds a step that need not happen.
func (k *moveWalk) addFault(what string, do func(w *MoveWorld) (broken string)) {
	w := k.from
	w.faults--
	w.turned, w.news = unturned, true
	broken := do(&w)
	w.forget()
	k.steps = append(k.steps, Step[MoveWorld]{What: what, To: w, Broken: broken, Fault: true})
}

// controllerSteps adds the steps of the balance controller: it plans, unless the store has yet to
// show what it wrote, and makes the writes of the plan one after the other.
func (k *moveWalk) controllerSteps() {
	if i := k.from.nextMoveWrite(); i >= 0 {
		k.addStep(balancing, "The controller writes "+name(i)+k.refusal(i), func(w *MoveWorld) string { return k.landWrite(w, i, true) })
		return
	}
	if k.from.awaited == [zones]bool{} {
		k.addStep(balancing, "The controller plans.", k.makePlan)
	}
}

func (k *moveWalk) refusal(i int) string {
	if k.from.writes[i].outdated && k.Unguarded != GuardVersion {
		return ", and is refused."
	}
	return "."
}

// nextMoveWrite returns the number of the next write of the plan; below 0 if there is none.
func (w *MoveWorld) nextMoveWrite() int {
	for i := range w.writes {
		if w.writes[i].pending {
			return i
		}
	}
	return -1
}

// makePlan decides, and records the writes to do. A write of a MachineDeployment that has changed
// since is refused in any case, and repeated once the store shows the change.
func (k *moveWalk) makePlan(w *MoveWorld) string {
	known := knownZones{zones: w.shown, units: w.shownUnits, troubles: w.troubles, overdue: w.overdue, fresh: w.unused(), continuous: k.Continuous}
	r := k.plans.planFor(known.without(k.Unguarded), knownZones.decide)
	broken := known.misplanned(r)
	w.troubles = r.troubles
	for i := range zones {
		if r.failed[i] {
			for s := range w.units[i] {
				w.units[i][s].fresh, w.shownUnits[i][s].fresh = false, false
			}
		}
		if one := r.writes[i]; one.pending && (w.latest[i] || k.Unguarded == GuardVersion) {
			broken = cmp.Or(broken, w.recordTurn(i, one))
			w.writes[i] = one
			w.writes[i].outdated = !w.latest[i]
		}
	}
	return broken
}

// landWrite does a write, unless the MachineDeployment has changed since it was decided.
func (k *moveWalk) landWrite(w *MoveWorld, i int, answered bool) (broken string) {
	one := w.writes[i]
	w.writes[i] = moveWrite{}
	switch {
	case one.outdated && k.Unguarded != GuardVersion:
		return ""
	case one.outdated:
		return fmt.Sprintf("I9: %s is written though it has changed since.", name(i))
	}
	if taken := one.to.move; k.Unguarded == RecordTaken && !taken.gives && taken.machines > 0 {
		one.to.move = w.zones[i].move
	}
	broken = w.mishanded(i, one)
	w.noteNames(i, one.to)
	w.change(i, one.to)
	w.awaited[i] = answered && !w.latest[i]
	return broken
}

// noteNames starts the time after which the deletion of a machine is repeated.
func (w *MoveWorld) noteNames(i int, to zone) {
	if to.isNamed() && (w.overdue[i] == never || to.names != w.zones[i].names) {
		w.overdue[i] = ahead
	}
}

// storeSteps adds that a store shows everything.
func (k *moveWalk) storeSteps() {
	if k.from.shown != k.from.zones || k.from.latest != [zones]bool{true, true} {
		k.addStep(zonesStore, "The store shows the MachineDeployments.", func(w *MoveWorld) string {
			w.shown, w.latest, w.awaited = w.zones, [zones]bool{true, true}, [zones]bool{}
			w.noteUpdate()
			return ""
		})
	}
	if k.from.shownUnits != k.from.units {
		k.addStep(unitsStore, "The store shows the Machines.", func(w *MoveWorld) string {
			w.shownUnits = w.units
			w.noteUpdate()
			return ""
		})
	}
}

// timeSteps adds the times that plans wait for.
func (k *moveWalk) timeSteps() {
	for i := range zones {
		wait := func(of func(w *MoveWorld) *moment, what string) {
			if *of(&k.from) == ahead {
				k.addStep(Anybody, fmt.Sprintf(what, name(i)), func(w *MoveWorld) string {
					*of(w), w.turned = passed, unturned
					return ""
				})
			}
		}
		wait(func(w *MoveWorld) *moment { return &w.troubles[i].until }, "The time to try %s again comes.")
		wait(func(w *MoveWorld) *moment { return &w.troubles[i].paused }, "The time to move a machine to %s again comes.")
		wait(func(w *MoveWorld) *moment { return &w.overdue[i] }, "A machine of %s should be gone.")
	}
}

// writeFaults adds what can happen to a write, and to the process.
func (k *moveWalk) writeFaults() {
	if i := k.from.nextMoveWrite(); i >= 0 {
		k.addFault("The controller writes "+name(i)+", and the write is lost.", func(w *MoveWorld) string { w.writes[i] = moveWrite{}; return "" })
		if !k.from.writes[i].outdated {
			k.addFault("The controller writes "+name(i)+", and the answer is lost.", func(w *MoveWorld) string { return k.landWrite(w, i, false) })
		}
	}
	k.addFault("The process is killed, and starts again.", func(w *MoveWorld) string { w.restart(); return "" })
}

// Rest returns what is wrong with a world at rest.
func (m *Moves) Rest(w MoveWorld) string { return m.unbalanced(&w) }

// workload is how many machines of a MachineDeployment may serve, and excess how many are kept in
// reserve besides.
func (z *zone) workload() int {
	return int(pool.Workload(z.object(0, 1, never), int32(z.replicas)))
}

func (z *zone) excess() int { return max(0, min(int(z.share), int(z.limit)-z.workload())) }

// knownZone is what decides about the machines of a MachineDeployment.
type knownZone struct {
	zone  zone
	units [zoneSlots]unit
}

// decide returns what its controller does next.
func (k knownZone) decide() turn {
	d := k.zone.object(0, 1, never)
	var machines []*mcm.Machine
	var pods []*corev1.Pod
	for at := range k.units {
		u := &k.units[at]
		if !u.there {
			continue
		}
		machines = append(machines, u.object(0, at))
		if u.pinned {
			pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pinned", Annotations: map[string]string{pool.SafeToEvict: "false"}}, Spec: corev1.PodSpec{NodeName: unitName(0, at)}})
		}
	}
	return turnOf(d, k.zone.excess(), machines, pods)
}

// machineSteps adds the controller of MachineDeployments and the cloud.
func (k *moveWalk) machineSteps(i int) {
	actor := ofZones + Actor(i)
	w := &k.from
	t := k.turns.planFor(knownZone{w.zones[i], w.units[i]}, knownZone.decide)
	if t.moved != "" {
		at := unitIndex(t.moved)
		what := map[bool]string{false: " is released.", true: " is put into reserve."}
		k.addStep(actor, unitName(i, at)+what[t.held], func(w *MoveWorld) string { w.units[i][at].marked = t.held; return "" })
	}
	if at := w.freeSlot(i); at >= 0 && t.creates {
		k.addStep(actor, "The controller creates "+unitName(i, at)+".", func(w *MoveWorld) string {
			w.units[i][at] = unit{there: true, phase: pending, marked: !t.serves}
			return ""
		})
	}
	for _, name := range t.deletes {
		at := unitIndex(name)
		k.addStep(actor, "The controller deletes "+unitName(i, at)+".", func(w *MoveWorld) string { return w.delete(i, at) })
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
		k.addStep(actor, "The controller removes the name "+what+".", func(w *MoveWorld) string {
			to := w.zones[i]
			to.names[at] = unnamed
			w.change(i, to)
			return ""
		})
	}
}

// present is how many machines stay.
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

// delete deletes a machine.
func (w *MoveWorld) delete(i, at int) string {
	w.units[i][at].phase, w.units[i][at].pinned = terminating, false
	return ""
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
