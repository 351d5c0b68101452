// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// Those who carry out plans: a sync, the key that only releases machines beside it, and what an
// instance that has lost its lease has yet to do.
const (
	syncing = iota
	releasing
	outgoing
)

var workerNames = [...]string{"The controller", "The release", "The old instance"}

// work is a plan that is being carried out: what is left of it.
type work struct {
	// writes reports whether the MachineDeployment is to be written, as next.
	writes  bool
	next    deployment
	sets    [2]setWrite
	errands [slots]errand
	// births are how many machines are to be created, and in which MachineSets.
	births    [2]births
	remembers bool
	memory    memory
	// stale reports whether the MachineDeployment has changed since it was looked at, and confirmed
	// whether it was found unchanged, or has been written; settled is the same for the MachineSets.
	stale, confirmed, settled bool
	failed                    bool
	// base is the MachineDeployment when it was last written, or found unchanged.
	base deployment
}

// setWrite is a write of a MachineSet.
type setWrite struct {
	pending, creates, stale bool
	to                      machineSet
}

// births are machines to create.
type births struct{ serve, reserve uint8 }

// errand is what is left to do for one machine.
type errand struct {
	node nodeWrite
	// writes reports whether the Machine is to be written: whether it has the mark, is marked for
	// deletion and has priority 1 then. enters reports whether it enters the reserve.
	writes, enters           bool
	marked, condemned, first bool
	goes                     deletion
	// begun reports whether the pods have been listed, so that the next request marks or deletes it,
	// or, of a release, whether its Node has been opened.
	begun bool
	// stale and staleNode report whether the Machine, or its Node, has changed since it was looked
	// at. excused reports whether the deletion was right then.
	stale, staleNode, excused bool
}

// nodeWrite is a write of a Node.
type nodeWrite uint8

const (
	noNode nodeWrite = iota
	opening
	closing
)

// deletion is a request to delete a machine.
type deletion uint8

const (
	stays deletion = iota
	// forSurplus is one that lists pods first if the machine is in reserve.
	forSurplus
	forOther
)

// isEmpty reports whether nothing is left to write.
func (w *work) isEmpty() bool {
	return !w.writes && w.sets == [2]setWrite{} && w.births == [2]births{} && w.errands == [slots]errand{}
}

// isAtRest reports whether a plan changes nothing.
func (w *work) isAtRest(m memory) bool { return w.isEmpty() && w.memory == m }

// fate is what becomes of a request.
type fate uint8

const (
	done fate = iota
	// lost requests have no effect, and unanswered ones have one.
	lost
	unanswered
)

// request adds a request of a work, which may be lost, or not be answered. do returns the law that it
// breaks.
func (k *walk) request(who int, what string, do func(w *World, own *work, f fate) (broken string)) {
	step := func(f fate) func(w *World) string {
		return func(w *World) string {
			own := &w.works[who]
			broken := do(w, own, f)
			if f != done {
				own.failed = true
			}
			w.finish(who)
			return broken
		}
	}
	what = workerNames[who] + " " + what
	k.addStep(what+".", step(done))
	if k.Losses && k.from.faults > 0 && who == syncing {
		k.addFault(what+", and the request is lost.", step(lost))
		k.addFault(what+", and the answer is lost.", step(unanswered))
	}
}

// finish ends a work of which nothing is left.
func (w *World) finish(who int) {
	own := &w.works[who]
	for i := range own.errands {
		if e := &own.errands[i]; e.node == noNode && !e.writes && e.goes == stays {
			*e = errand{}
		}
	}
	if !own.isEmpty() {
		return
	}
	if own.remembers && !own.failed {
		w.memory = own.memory
	}
	*own = work{}
}

// plans adds that the controller decides.
func (k *walk) plans() {
	w := &k.from
	switch {
	case w.works[syncing] != work{}:
		if k.Release {
			k.planRelease()
		}
		return
	case w.isUnsure():
		k.addStep("The controller reads what it is unsure of.", func(w *World) string { w.resolve(); return "" })
		return
	}
	d := k.planOf(w)
	next := d.work
	k.begin(w, &next)
	if next.isAtRest(w.memory) && d.broken == "" || next.isEmpty() && next.failed {
		return
	}
	k.addStep("The controller plans.", func(w *World) string {
		broken := d.broken
		if broken == "" {
			broken = w.recordTurns(&next)
		}
		w.works[syncing] = next
		w.forgetNames()
		w.finish(syncing)
		return broken
	})
}

// planOf returns the decision about a world.
func (k *walk) planOf(w *World) *decision {
	in := w.known()
	if k.Unguarded == KeepUnparsed && in.deployment.unparsed {
		in.deployment.unparsed, in.deployment.excess = false, 0
	}
	return k.decisions.planFor(in, knownPool.decide)
}

// begin adds to a work what has changed since it was looked at, and removes what is refused because
// of that in any case. It is repeated once the stores show the change.
func (k *walk) begin(w *World, own *work) {
	own.base, own.stale = w.deployment.seen, !w.deployment.isSeen()
	for s := range own.sets {
		own.sets[s].stale = own.sets[s].pending && !w.sets[s].isSeen()
	}
	for i := range own.errands {
		e, s := &own.errands[i], &w.machines[i]
		if *e == (errand{}) {
			continue
		}
		e.excused = e.goes != stays && w.wronged(i, own) == ""
		e.stale, e.staleNode = !s.machine.isSeen(), s.host.is.closed != s.host.seen.closed || s.host.is.there != s.host.seen.there
	}
	if k.Unguarded != GuardVersion {
		k.dropRefused(w, own)
	}
}

// dropRefused removes from a work what cannot be done.
func (k *walk) dropRefused(w *World, own *work) {
	for i := range own.errands {
		if e := &own.errands[i]; *e != (errand{}) && w.refuses(i, e) {
			own.failed = true
			if *e = (errand{node: e.node, staleNode: e.staleNode}); e.staleNode || w.silent.is {
				*e = errand{}
			}
		}
	}
	if writesSets := own.sets != [2]setWrite{}; own.stale && (own.writes || writesSets && k.Unguarded != ConfirmUnchanged) || writesSets && (own.sets[0].stale || own.sets[1].stale) {
		own.abort()
	} else if own.stale && k.Unguarded != ConfirmUnchanged {
		own.omitLives()
	}
}

// refuses reports whether what is to be done for a machine is refused.
func (w *World) refuses(i int, e *errand) bool {
	s := &w.machines[i]
	if e.goes != stays && w.works[releasing].errands[i].begun {
		return true
	}
	lists := s.host.is.there && (e.enters || e.goes == forSurplus && s.machine.is.marked)
	switch {
	case e.stale && (e.writes || e.goes != stays), e.staleNode && e.node != noNode:
		return true
	case w.silent.is:
		return e.node != noNode || lists
	}
	return lists && s.host.is.busy && (e.node == noNode || e.goes != stays)
}

// abort ends the part of a work that begins with the MachineDeployment.
func (w *work) abort() {
	w.failed, w.writes, w.sets = true, false, [2]setWrite{}
	w.omitLives()
	for i := range w.errands {
		if e := &w.errands[i]; e.writes && !e.enters {
			e.writes = false
		}
	}
}

// omitLives omits what creates and deletes machines.
func (w *work) omitLives() {
	if w.births != [2]births{} {
		w.births, w.failed = [2]births{}, true
	}
	for i := range w.errands {
		if e := &w.errands[i]; e.goes != stays {
			e.goes, w.failed = stays, true
		}
	}
}

// isUnsure reports whether the controller has yet to find out what became of a request.
func (w *World) isUnsure() bool {
	for i := range w.machines {
		if s := &w.machines[i]; s.unsure {
			return true
		}
	}
	return w.unsure != [2]bool{}
}

// forgetNames forgets the names of machines that are known to exist.
func (w *World) forgetNames() {
	for i := range w.machines {
		if s := &w.machines[i]; s.machine.seen.there {
			s.repeated = false
		}
	}
}

// resolve reads the MachineSets that may have been written, and the machines that may have been
// deleted.
func (w *World) resolve() {
	for s := range w.sets {
		if w.unsure[s] {
			w.sets[s].show()
		}
	}
	w.unsure, w.turns = [2]bool{}, [slots]direction{}
	for i := range w.machines {
		if s := &w.machines[i]; s.unsure {
			s.machine.show()
			s.unsure = false
		}
	}
}

// planRelease begins the work that only takes machines out of the reserve, while a sync is busy with
// others.
func (k *walk) planRelease() {
	w := &k.from
	if w.works[releasing] != (work{}) {
		return
	}
	own := work{base: w.deployment.seen}
	for i, e := range k.planOf(w).work.errands {
		m, other := &w.machines[i], &w.works[syncing].errands[i]
		if !e.writes || e.marked || !m.machine.seen.marked || other.writes || !m.machine.isSeen() || m.host.is.closed != m.host.seen.closed {
			continue
		}
		if e.goes = stays; e.node != opening {
			e.node = noNode
		}
		if !w.silent.is || e.node == noNode {
			own.errands[i] = e
		}
	}
	if !own.isEmpty() {
		k.addStep("The release begins.", func(w *World) string { w.works[releasing] = own; return "" })
	}
}

// carryOut adds the next requests of a work.
func (k *walk) carryOut(who int) {
	own := &k.from.works[who]
	if *own == (work{}) {
		return
	}
	switch writesSets := own.sets != [2]setWrite{}; {
	case own.writes:
		k.request(who, "writes the MachineDeployment", k.writeDeployment)
	case writesSets && !own.confirmed:
		k.request(who, "reads the MachineDeployment again", k.confirm)
	case writesSets:
		for s := range own.sets {
			if own.sets[s].pending {
				k.request(who, "writes "+setName(uint8(s)), func(w *World, own *work, f fate) string { return k.writeSet(w, own, s, f) })
				break
			}
		}
	case own.writesMachines() && who != releasing:
		k.eachErrand(who, func(e *errand) bool { return e.writes && !e.enters }, "writes Machine %s", k.writeMachine)
	case (own.births != [2]births{} || own.deletes()) && !own.settled:
		k.request(who, "reads the MachineDeployment and its MachineSets again", k.settle)
	case own.births != [2]births{}:
		k.birthSteps(who)
	default:
		k.eachErrand(who, func(e *errand) bool { return e.goes == forSurplus && !e.begun }, "lists the pods of %s", k.list)
		k.eachErrand(who, func(e *errand) bool { return e.goes == forOther || e.goes == forSurplus && e.begun }, "deletes %s", k.delete)
	}
	k.nodeSteps(who)
}

// nodeSteps adds what is done beside all else: Nodes that pods may wait for, and then the machines
// that enter the reserve.
func (k *walk) nodeSteps(who int) {
	w := &k.from
	if who == releasing { // if the machine is being deleted, it is written first, so that the deletion fails
		isDeleting := func(i int) bool { return w.isDeleting(i) && k.Unguarded != ExcludeReleases }
		for i := range slots {
			one := func(e *errand) bool { return e == &w.works[who].errands[i] }
			k.eachErrand(who, func(e *errand) bool { return one(e) && e.node != noNode && (!e.writes || !isDeleting(i)) }, "opens the Node of %s", k.writeNode)
			k.eachErrand(who, func(e *errand) bool { return one(e) && e.writes && (e.node == noNode || isDeleting(i)) }, "writes Machine %s", k.writeMachine)
		}
		return
	}
	isUrgent := func(e *errand) bool { return e.node != noNode && !e.enters }
	if k.Unguarded == RepairNodes {
		isUrgent = func(e *errand) bool { return e.node != noNode && !e.enters && e.writes }
	}
	k.eachErrand(who, isUrgent, "writes the Node of %s", k.writeNode)
	own := &w.works[who]
	for i := range own.errands {
		if isUrgent(&own.errands[i]) {
			return
		}
	}
	k.eachErrand(who, func(e *errand) bool { return e.enters && e.node != noNode }, "closes the Node of %s", k.writeNode)
	k.eachErrand(who, func(e *errand) bool { return e.enters && e.writes && e.node == noNode && !e.begun }, "lists the pods of %s", k.list)
	k.eachErrand(who, func(e *errand) bool { return e.enters && e.writes && e.node == noNode && e.begun }, "marks %s", k.writeMachine)
}

// eachErrand adds a request for each errand that meets a condition.
func (k *walk) eachErrand(who int, is func(*errand) bool, what string, do func(w *World, own *work, i int, f fate) string) {
	own := &k.from.works[who]
	for i := range own.errands {
		if is(&own.errands[i]) {
			k.request(who, fmt.Sprintf(what, name(i)), func(w *World, own *work, f fate) string { return do(w, own, i, f) })
		}
	}
}

func (w *work) writesMachines() bool {
	for i := range w.errands {
		if e := &w.errands[i]; e.writes && !e.enters {
			return true
		}
	}
	return false
}

func (w *work) deletes() bool {
	for i := range w.errands {
		if w.errands[i].goes != stays {
			return true
		}
	}
	return false
}

// isDeleting reports whether this process is about to request the deletion of a machine.
func (w *World) isDeleting(i int) bool {
	e := &w.works[syncing].errands[i]
	return e.goes != stays && e.begun
}
