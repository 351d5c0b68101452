// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"

	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// Removals models how an autoscaler removes machines and withdraws requests: the decisions of the
// node groups' server, and how it finds out the outcome of a write whose answer was lost, beside
// what creates, marks and deletes machines, with others that write the MachineDeployment. The
// autoscaler repeats what was not answered.
type Removals struct {
	// Replicas is how many machines serve at the beginning, and Spare how many are in reserve.
	Replicas, Spare int
	// Min and Max are the bounds.
	Min, Max int
	// Faults is the maximum number of faults in one story, including machines that are not needed.
	Faults int
	// Unguarded disables a guard, to see what it prevents.
	Unguarded Guard

	plans *memo[knownGroup, removePlan]
	turns *memo[sizedUnits, turn]
}

// NewRemovals returns the model with its memory.
func NewRemovals(m Removals) *Removals {
	m.plans, m.turns = &memo[knownGroup, removePlan]{}, &memo[sizedUnits, turn]{}
	return &m
}

// Begin returns a settled world, and one where a machine is still to be created.
func (m *Removals) Begin() (all []RemovalWorld) {
	for missing := range 2 {
		n := uint8(m.Replicas)
		w := RemovalWorld{is: sized{replicas: n, applied: n}, clock: 2, owed: n, current: true, faults: uint8(m.Faults)}
		for at := range m.Replicas + m.Spare - missing {
			w.units[at] = unit{there: true, phase: running, marked: at >= m.Replicas}
		}
		w.shown, w.shownUnits = w.is, w.units
		all = append(all, w)
	}
	return all
}

// Actors of this model.
const (
	serving Actor = 1 + iota
	removing
	sizeStore
	machineStore
	makers
	splitter
)

// removeWalk collects the steps from one world.
type removeWalk struct {
	*Removals
	from  RemovalWorld
	steps []Step[RemovalWorld]
}

// Steps returns everything that can happen next. Steps that wait for time to pass happen only if
// nothing else is left.
func (m *Removals) Steps(w RemovalWorld) []Step[RemovalWorld] {
	k := &removeWalk{Removals: m, from: w, steps: make([]Step[RemovalWorld], 0, 16)}
	k.serverSteps()
	k.scalerSteps()
	k.storeSteps()
	k.machineSteps()
	k.clockSteps()
	if w.faults > 0 {
		k.callFaults()
		k.otherFaults()
	}
	return k.steps
}

// addStep adds a step that its actor takes sooner or later. do returns the law that it breaks.
func (k *removeWalk) addStep(actor Actor, what string, do func(w *RemovalWorld) (broken string)) {
	w := k.from
	broken := do(&w)
	w.forget()
	k.steps = append(k.steps, Step[RemovalWorld]{What: what, To: w, Broken: broken, Actor: actor})
}

// addFault adds a step that need not happen.
func (k *removeWalk) addFault(what string, do func(w *RemovalWorld) (broken string)) {
	w := k.from
	w.faults--
	broken := do(&w)
	w.forget()
	k.steps = append(k.steps, Step[RemovalWorld]{What: what, To: w, Broken: broken, Fault: true})
}

// scalerSteps adds the steps of the autoscaler: it asks for each machine that it removes, again and
// again, until that is answered or the machine is gone.
func (k *removeWalk) scalerSteps() {
	if k.from.call.kind != noCall {
		return
	}
	for at := range k.from.unneeded {
		switch u := &k.from.units[at]; {
		case !k.from.unneeded[at]:
		case !u.there:
			k.addStep(removing, "The autoscaler sees that "+unitName(0, at)+" is gone.", func(w *RemovalWorld) string { w.unneeded[at] = false; return "" })
		default:
			k.addStep(removing, "The autoscaler asks to remove "+unitName(0, at)+".", func(w *RemovalWorld) string {
				w.call = call{kind: removal, machine: uint8(at) + 1}
				return ""
			})
		}
	}
}

// serverSteps adds the steps of the node groups' server: it decides, and writes.
func (k *removeWalk) serverSteps() {
	switch c := k.from.call; {
	case c.kind == noCall:
	case !c.decided:
		k.addStep(serving, "The server decides.", k.decide)
	case c.outdated:
		k.addStep(serving, "The server writes, and finds another version.", k.resolve)
	default:
		k.addStep(serving, "The server writes.", func(w *RemovalWorld) string {
			broken := k.landWrite(w)
			w.record()
			return cmp.Or(broken, w.endCall(true))
		})
	}
}

// decide makes the decision about a call. The server reads the machine that it removes from the API
// server, or all machines before it withdraws some.
func (k *removeWalk) decide(w *RemovalWorld) (broken string) {
	in := knownGroup{is: w.newest(), units: w.shownUnits, recent: w.recent, clock: w.clock, call: w.call}
	switch at := int(w.call.machine) - 1; {
	case k.Unguarded == ReadMachines:
	case w.call.kind == withdrawal:
		for at, u := range w.units {
			if !in.units[at].there {
				in.units[at] = u
			}
		}
	default:
		in.units[at], in.gone = w.units[at], !w.units[at].there
	}
	p := k.plans.planFor(in, func(in knownGroup) removePlan { return in.decide(k.Removals) })
	switch {
	case p.failed: // the autoscaler gives it up
		w.unneeded[w.call.machine-1] = false
		return w.endCall(false)
	case p.idle:
		return w.endCall(true)
	}
	if w.call.kind == removal {
		broken = w.misdecided(int(w.call.machine)-1, in.is, p.next)
	}
	w.call.decided, w.call.base, w.call.next = true, in.is, p.next
	w.call.lost, w.call.specs, w.call.outdated = false, 0, !w.current
	if !w.current && w.is.replicas != in.is.replicas {
		w.call.specs = 1
	}
	return broken
}

// misdecided returns the law that a decision to remove a machine breaks.
func (w *RemovalWorld) misdecided(at int, from, to sized) string {
	switch u := &w.units[at]; {
	case !u.stays() || from.named[at] > 0:
		return fmt.Sprintf("N7: The MachineDeployment is written for %s, which is leaving.", unitName(0, at))
	case u.marked && to.replicas < from.replicas:
		return fmt.Sprintf("N7: Replicas fall for %s, which is in reserve.", unitName(0, at))
	}
	return ""
}

// landWrite does a write of the server, and returns the law that it breaks.
func (k *removeWalk) landWrite(w *RemovalWorld) (broken string) {
	at, from := int(w.call.machine)-1, w.is
	fell := w.call.next.replicas < from.replicas
	w.change(w.call.next)
	switch {
	case fell && int(w.is.replicas) < k.Min:
		return fmt.Sprintf("N6: Replicas fall to %d, and the minimum is %d.", w.is.replicas, k.Min)
	case w.call.kind == removal && w.is.replicas-w.is.applied < from.replicas-from.applied:
		return fmt.Sprintf("B2: %s is removed, and growth is applied that is still to be split.", unitName(0, at))
	case w.call.kind == withdrawal:
		w.owed -= from.replicas - w.is.replicas
	case fell && !w.counted[at]:
		w.counted[at] = true
		w.owed--
	case fell:
		return fmt.Sprintf("N7: Replicas fall for %s a second time.", unitName(0, at))
	}
	return ""
}

// endCall answers a call, and returns the law that this breaks. The autoscaler does not repeat what
// was answered.
func (w *RemovalWorld) endCall(answered bool) (broken string) {
	if at := int(w.call.machine) - 1; w.call.kind == removal && answered {
		w.unneeded[at] = false
		if w.units[at].stays() && w.is.named[at] == 0 {
			broken = fmt.Sprintf("N5: The answer is that %s is removed, and nothing removes it.", unitName(0, at))
		}
	}
	w.call = call{}
	for at := range w.units {
		w.units[at].fresh = false
	}
	return broken
}

// resolve finds out what became of a write when the MachineDeployment has another version: it took
// effect, or it is decided again, or the call fails.
func (k *removeWalk) resolve(w *RemovalWorld) string {
	c := w.call
	base, live := c.base.object(k.Min, k.Max), w.is.object(k.Min, k.Max)
	live.Generation = base.Generation + int64(c.specs)
	done, err := k.change(c).ResolveOutcome(base, live, c.lost)
	w.record()
	switch {
	case err != nil:
		return w.endCall(false)
	case done || c.lost && k.Unguarded == DecideAgain:
		return w.endCall(true)
	default:
		w.call = call{kind: c.kind, machine: c.machine, delta: c.delta}
	}
	return ""
}

// change returns the change of a call that has been decided.
func (k *removeWalk) change(c call) nodegroupplan.Change {
	at := unitName(0, int(c.machine)-1)
	base, next := c.base.object(k.Min, k.Max), c.next.object(k.Min, k.Max)
	change := nodegroupplan.Change{From: int32(c.base.replicas), To: int32(c.next.replicas), Replicas: int32(c.next.replicas), Annotations: map[string]string{}}
	for key, text := range next.Annotations {
		if base.Annotations[key] != text {
			change.Annotations[key] = text
		}
	}
	if c.kind == removal {
		change.Names = []string{at}
	}
	return change
}

// storeSteps adds that a store shows everything.
func (k *removeWalk) storeSteps() {
	if k.from.shown != k.from.is || !k.from.current || k.from.answered {
		k.addStep(sizeStore, "The server's store shows the MachineDeployment.", func(w *RemovalWorld) string { w.updateStore(); return "" })
	}
	if k.from.shownUnits != k.from.units {
		k.addStep(machineStore, "The server's store shows the Machines.", func(w *RemovalWorld) string { w.shownUnits = w.units; return "" })
	}
}

// clockSteps adds that time passes. Long waits end only if nothing else is left.
func (k *removeWalk) clockSteps() {
	waits := !k.isStill()
	k.addStep(Anybody, "A second passes.", func(w *RemovalWorld) string { w.clock++; return "" })
	if waits {
		return
	}
	for at := range k.from.units {
		if k.from.units[at].stays() && k.from.is.named[at] > k.from.is.changed {
			k.addStep(Anybody, "Ten seconds pass.", func(w *RemovalWorld) string { w.clock += overdueSeconds; return "" })
			break
		}
	}
	if k.from.recent != [zoneSlots]bool{} && k.from.is.named == [zoneSlots]uint8{} {
		k.addStep(Anybody, "A minute passes.", func(w *RemovalWorld) string { w.recent = [zoneSlots]bool{}; return "" })
	}
}

func (k *removeWalk) isStill() bool {
	for _, step := range k.steps {
		if step.To != k.from {
			return false
		}
	}
	return true
}

// callFaults adds what can happen to a call, and to the process.
func (k *removeWalk) callFaults() {
	if c := k.from.call; c.decided && !c.outdated {
		k.addFault("The server writes, and the write is lost.", func(w *RemovalWorld) string { w.call.lost = true; return "" })
		k.addFault("The server writes, and the answer is lost.", func(w *RemovalWorld) string {
			broken := k.landWrite(w)
			w.call.lost = true
			return broken
		})
		k.addFault("The server writes, and the autoscaler gets no answer.", func(w *RemovalWorld) string {
			broken := k.landWrite(w)
			w.record()
			return cmp.Or(broken, w.endCall(false))
		})
	}
	k.addFault("The process is killed, and starts again.", func(w *RemovalWorld) string { w.restart(); return "" })
}

// otherFaults adds what the autoscaler finds, and what others do.
func (k *removeWalk) otherFaults() {
	w := &k.from
	for at := range w.units {
		u := &w.units[at]
		if u.serves() && w.is.named[at] == 0 && !w.unneeded[at] {
			k.addFault("The autoscaler finds that "+unitName(0, at)+" is not needed.", func(w *RemovalWorld) string { w.unneeded[at] = true; return "" })
		}
		if u.there && u.phase == running {
			k.addFault(unitName(0, at)+" fails, and is deleted.", func(w *RemovalWorld) string {
				w.units[at].phase = terminating
				w.excused = w.excused || w.call.decided && int(w.call.machine) == at+1
				return ""
			})
		}
	}
	known := w.newest()
	if instances := w.shownInstances(); w.call.kind == noCall && instances < int(known.replicas) {
		k.addFault("The autoscaler withdraws what does not exist.", func(w *RemovalWorld) string {
			w.call = call{kind: withdrawal, delta: known.replicas - uint8(instances)}
			return ""
		})
	}
	if int(w.is.replicas) < k.Max {
		k.addFault("A user raises replicas.", func(w *RemovalWorld) string {
			to := w.is
			to.replicas++
			w.owed++
			w.change(to)
			return ""
		})
	}
	k.addFault("Something else writes the MachineDeployment.", func(w *RemovalWorld) string { w.change(w.is); return "" })
}

// shownInstances is how many machines of the group the server shows to the autoscaler.
func (w *RemovalWorld) shownInstances() (n int) {
	for at := range w.shownUnits {
		if u := &w.shownUnits[at]; u.there && !u.marked {
			n++
		}
	}
	return n
}

// Rest returns what is wrong with a world at rest.
func (m *Removals) Rest(w RemovalWorld) string {
	n, spare := 0, 0
	for at := range w.units {
		u := &w.units[at]
		switch {
		case !u.there:
		case w.counted[at] || w.is.named[at] > 0:
			return fmt.Sprintf("I5: At rest, %s was removed and exists.", unitName(0, at))
		case u.marked:
			spare++
		default:
			n++
		}
	}
	switch {
	case w.is.replicas != w.owed:
		return fmt.Sprintf("N7: At rest, replicas are %d, and should be %d.", w.is.replicas, w.owed)
	case n != int(w.is.replicas) || w.is.applied != w.is.replicas || spare != m.excess(&w):
		return fmt.Sprintf("I5: At rest, %d machines serve of %d, and %d are in reserve.", n, w.is.replicas, spare)
	}
	return ""
}

// excess is how many machines are kept in reserve.
func (m *Removals) excess(w *RemovalWorld) int {
	return max(0, min(m.Spare, m.Max-int(min(w.is.replicas, w.is.applied))))
}
