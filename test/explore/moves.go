// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
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
	// Faults is the maximum number of faults in one story.
	Faults int
	// Unguarded disables a guard, to see what it prevents.
	Unguarded Guard

	plans *rebalances
}

// NewMoves returns the model with its memory.
func NewMoves(m Moves) *Moves {
	m.plans = newRebalances()
	return &m
}

// Begin returns settled worlds.
func (m *Moves) Begin() (all []MoveWorld) {
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
	r := k.plans.planFor(known.without(k.Unguarded))
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
