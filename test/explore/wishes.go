// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"slices"

	reservesplan "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Wishes models how the machines of Reserves reach MachineDeployments: the plan of the controller
// of Reserves, carried out write by write, with late stores, and users, clouds and API servers that
// can do anything. The Reserve shop selects the MachineDeployments a and b, and the Reserve queue
// only a.
type Wishes struct {
	// Faults is the maximum number of faults in one story.
	Faults int
	// Amount is what shop requests at the beginning, and Rooms how many spare machines there may be
	// in a and b. Queue is what queue requests; 0 means that it does not exist.
	Amount int
	Rooms  [2]int
	Queue  int
	// Unguarded disables a guard, to see what it prevents: GuardVersion or KeepBlocked.
	Unguarded Guard

	spreads *memo[knownWishes, *spread]
}

// NewWishes returns the model with its memory.
func NewWishes(m Wishes) *Wishes {
	m.spreads = &memo[knownWishes, *spread]{}
	return &m
}

// Begin returns worlds in which the Reserves have just been created, with machines that can be
// created in a, and with machines that cannot.
func (m *Wishes) Begin() []WishWorld {
	var all []WishWorld
	for _, out := range []bool{false, true} {
		w := WishWorld{queued: true, faults: uint8(m.Faults), out: [2]bool{out}}
		w.wishes[0].begin(wish{there: true, amount: uint8(m.Amount)})
		w.wishes[1].begin(wish{there: m.Queue > 0, amount: uint8(m.Queue)})
		for i := range w.targets {
			w.targets[i].begin(target{there: true, limit: uint8(m.Rooms[i] + baseReplicas)})
		}
		all = append(all, w)
	}
	return all
}

// wishWalk collects the steps from one world.
type wishWalk struct {
	*Wishes
	from  WishWorld
	steps []Step[WishWorld]
}

// Steps returns everything that can happen next.
func (m *Wishes) Steps(w WishWorld) []Step[WishWorld] {
	k := &wishWalk{Wishes: m, from: w, steps: make([]Step[WishWorld], 0, 24)}
	k.controllerSteps()
	k.storeSteps()
	for i := range w.targets {
		k.machineSteps(i)
	}
	if w.faults > 0 {
		k.writeFaults()
		k.userFaults()
		for i := range w.targets {
			k.targetFaults(i)
		}
	}
	return k.steps
}

// Actors that have their turn again and again: the controller of Reserves, the store of each
// object, and what creates the machines of each MachineDeployment and reports them.
const (
	planner  Actor = 1
	storeOf  Actor = 2
	makersOf Actor = 6
)

// addStep adds a step that its actor takes sooner or later. do returns the law that it breaks.
func (k *wishWalk) addStep(actor Actor, what string, do func(w *WishWorld) (broken string)) {
	w := k.from
	broken := do(&w)
	k.skipIdle(&w)
	k.steps = append(k.steps, Step[WishWorld]{What: what, To: w, Broken: broken, Actor: actor})
}

// addFault adds a step that need not happen.
func (k *wishWalk) addFault(what string, do func(w *WishWorld) (broken string)) {
	w := k.from
	w.faults--
	broken := do(&w)
	k.skipIdle(&w)
	k.steps = append(k.steps, Step[WishWorld]{What: what, To: w, Broken: broken, Fault: true})
}

// skipIdle makes a plan that writes nothing at once: it can only be repeated, until the controller
// knows more.
func (k *wishWalk) skipIdle(w *WishWorld) {
	if !w.queued || w.nextWrite() >= 0 {
		return
	}
	s := k.planOf(w)
	for n, next := range s.writes {
		if next.pending && (w.isLatest(n) || k.Unguarded == GuardVersion) {
			return
		}
	}
	w.queued = s.broken != ""
}

// controllerSteps adds the steps of the controller of Reserves: it plans, and makes the writes of
// the plan one after the other.
func (k *wishWalk) controllerSteps() {
	if n := k.from.nextWrite(); n >= 0 {
		what := "The controller writes " + objectName(n)
		if k.from.writes[n].outdated && k.Unguarded != GuardVersion {
			k.addStep(planner, what+", and is refused.", func(w *WishWorld) string { w.failWrite(n); return "" })
			return
		}
		k.addStep(planner, what+".", func(w *WishWorld) string { return w.landWrite(n, true) })
		return
	}
	if k.from.queued {
		k.addStep(planner, "The controller plans.", k.makePlan)
	}
}

// makePlan decides, and records the writes to do. A write of an object that has changed since is
// refused in any case, and repeated once the store shows the change.
func (k *wishWalk) makePlan(w *WishWorld) (broken string) {
	s := k.planOf(w)
	broken, w.queued = s.broken, false
	informed := w.isInformed()
	if !informed {
		w.turns = [2]direction{} // what it decides may have to be taken back
	}
	for n, next := range s.writes {
		switch latest := w.isLatest(n); {
		case !next.pending:
		case latest || k.Unguarded == GuardVersion:
			if informed {
				broken = cmp.Or(broken, w.recordTurn(n, next))
			}
			w.writes[n] = next
			w.writes[n].outdated = !latest
		default:
			w.queued = true
		}
	}
	return broken
}

// planOf returns the plan for what the controller knows.
func (m *Wishes) planOf(w *WishWorld) *spread {
	known := w.known()
	if m.Unguarded == KeepBlocked {
		for i := range known.wishes {
			for p := range known.wishes[i].parts {
				known.wishes[i].parts[p].blocked = false
			}
		}
	}
	return m.spreads.planFor(known, knownWishes.decide)
}

// storeSteps adds that a store shows the latest version of one object.
func (k *wishWalk) storeSteps() {
	for n := range k.from.writes {
		if k.from.isShown(n) {
			continue
		}
		k.addStep(storeOf+Actor(n), "The store shows "+objectName(n)+".", func(w *WishWorld) string { w.updateStore(n); return "" })
	}
}

// landWrite does a write, and records the answer if it arrives. The annotation of a
// MachineDeployment stays within its max.
func (w *WishWorld) landWrite(n int, answered bool) (broken string) {
	one := w.writes[n]
	switch {
	case w.isGone(n):
		answered = false
	case n < 2:
		t := &w.targets[n].is
		switch {
		case t.leaving:
			broken = fmt.Sprintf("I9: %s is being deleted, and its annotation is written.", name(n))
		case int(one.asked) > t.roomBelowMax():
			broken = fmt.Sprintf("I1: %d machines are requested of %s, which has room for %d.", one.asked, name(n), t.roomBelowMax())
		case one.asked == t.asked && one.by == t.by:
			broken = fmt.Sprintf("I9: The annotation of %s is written again.", name(n))
		}
		w.changeTarget(n, false, func(t *target) { t.asked, t.by, t.touched = one.asked, one.by, false })
	default:
		to := w.wishes[n-2].is
		to.parts = one.parts
		w.changeWish(n-2, false, to)
	}
	switch {
	case !answered:
		w.failWrite(n)
		return broken
	case n < 2:
		w.targets[n].record()
	default:
		w.wishes[n-2].record()
	}
	w.writes[n] = wishWrite{}
	return broken
}

// writeFaults adds what can happen to a write, and to the process.
func (k *wishWalk) writeFaults() {
	if n := k.from.nextWrite(); n >= 0 {
		what := "The controller writes " + objectName(n)
		k.addFault(what+", and the write is lost.", func(w *WishWorld) string { w.failWrite(n); return "" })
		if !k.from.writes[n].outdated {
			k.addFault(what+", and the answer is lost.", func(w *WishWorld) string { return w.landWrite(n, false) })
		}
	}
	k.addFault("The process is killed, and starts again.", func(w *WishWorld) string { w.restart(); return "" })
}

// userFaults adds what users do with Reserves.
func (k *wishWalk) userFaults() {
	for i := range k.from.wishes {
		is := k.from.wishes[i].is
		change := func(what string, to wish) {
			k.addFault(what, func(w *WishWorld) string { w.changeWish(i, true, to); return "" })
		}
		if !is.there {
			change("A user creates the Reserve "+wishNames[i]+" with 2 machines.", wish{there: true, amount: 2})
			continue
		}
		change("A user deletes the Reserve "+wishNames[i]+".", wish{})
		for amount := range uint8(4) {
			to := is
			if to.amount = amount; to != is && i == 0 {
				change(fmt.Sprintf("A user changes the amount of %s to %d.", wishNames[i], amount), to)
			}
		}
	}
}

// targetFaults adds what users, others and the cloud do with a MachineDeployment.
func (k *wishWalk) targetFaults(i int) {
	is := k.from.targets[i].is
	if !is.there || is.leaving {
		return
	}
	change := func(what string, f func(t *target)) {
		k.addFault(fmt.Sprintf(what, name(i)), func(w *WishWorld) string {
			w.changeTarget(i, true, func(t *target) { f(t); t.touched = true })
			return ""
		})
	}
	change("Something else writes %s.", func(*target) {})
	change("A user deletes %s.", func(t *target) { t.leaving = true })
	for _, own := range []uint8{0, 1, 3} {
		if own != is.own {
			change(fmt.Sprintf("A user changes the excess of %%s to %d.", own), func(t *target) { t.own = own })
		}
	}
	for limit := uint8(baseReplicas); limit < baseReplicas+4; limit++ {
		if limit != is.limit {
			change(fmt.Sprintf("A user changes the maximum of %%s to %d.", limit), func(t *target) { t.limit = limit })
		}
	}
	if is.asked > 0 {
		change("A user removes the annotation of %s.", func(t *target) { t.asked, t.by = 0, 0 })
	} else {
		change("A user writes an annotation to %s.", func(t *target) { t.asked, t.by = 1, 1 })
	}
	if is.ready > 0 {
		change("A spare machine of %s fails.", func(t *target) { t.ready, t.health = t.ready-1, growing })
	}
	if is.health == cannotBeMade {
		k.addFault("The creation of a machine of "+name(i)+" is tried again.", func(w *WishWorld) string {
			w.changeTarget(i, false, func(t *target) { t.health = growing })
			return ""
		})
	}
	k.addFault("The cloud changes whether it creates machines of "+name(i)+".", func(w *WishWorld) string { w.out[i] = !w.out[i]; return "" })
}

// machineSteps adds what the controller of MachineDeployments and the cloud do with the spare machines of a
// MachineDeployment, as it is reported.
func (k *wishWalk) machineSteps(i int) {
	t := k.from.targets[i].is
	if t.leaving {
		k.addStep(makersOf+Actor(i), name(i)+" is gone.", func(w *WishWorld) string {
			w.changeTarget(i, true, func(t *target) { *t = target{} })
			return ""
		})
	}
	if !t.there || t.leaving {
		return
	}
	e, broken := t.effective(i)
	excess, rest := uint8(e.Excess), standing(e)
	report := func(what string, ready uint8, is health) {
		k.addStep(makersOf+Actor(i), fmt.Sprintf(what, name(i)), func(w *WishWorld) string {
			news := t.touched || ready > t.ready || is == cannotBeMade
			w.changeTarget(i, news, func(t *target) { t.ready, t.health = ready, is })
			return broken
		})
	}
	switch {
	case t.ready > excess:
		report("%s gives up spare machines.", excess, rest)
	case t.ready == excess && t.health != rest:
		report("%s reports its reserve.", t.ready, rest)
	case t.ready == excess:
	case !k.from.out[i] && t.ready+1 == excess:
		report("The last spare machine of %s is ready.", excess, rest)
	case !k.from.out[i]:
		report("A spare machine of %s is ready.", t.ready+1, growing)
	case t.health != growing && t.health != cannotBeMade:
		report("%s reports that its reserve grows.", t.ready, growing)
	case t.health != cannotBeMade:
		report("%s reports that machines cannot be created.", t.ready, cannotBeMade)
	}
}

// standing is the condition of a reserve with all its machines.
func standing(e reserve.EffectiveExcess) health {
	switch {
	case e.Excess < e.Wish:
		return atMax
	case e.Excess == 0:
		return noReserve
	}
	return complete
}

// misspread returns the law that a decision breaks, by what is known. Ready machines hold until
// their replacements were requested and are ready.
func (k *knownWishes) misspread(d reservesplan.Decision) string {
	was := k.wishes[slices.Index(wishNames[:], d.Reserve.Name)].parts
	var before, asked, blocked, hadReady, hasReady int
	holds, waits := false, false
	for _, p := range d.Parts {
		i := index(p.Deployment.Name)
		t, had := &k.targets[i], int(was[i].machines)
		if p.Machines > t.roomBelowMax() || t.leaving {
			return fmt.Sprintf("I1: %s requests %d machines of %s, which has room for %d.", d.Reserve.Name, p.Machines, name(i), t.roomBelowMax())
		}
		before, asked = before+had, asked+p.Machines
		hadReady, hasReady = hadReady+min(had, int(t.ready), t.roomBelowMax()), hasReady+min(p.Machines, int(t.ready))
		if p.Blocked {
			blocked++
		}
		holds = holds || p.Machines > 0 && p.Machines <= had
		waits = waits || p.Machines > min(had, int(t.ready))
	}
	switch {
	case hasReady < min(hadReady, d.Desired):
		return fmt.Sprintf("R4: %s gives up ready machines: %d of %d stay, of %d that it requests.", d.Reserve.Name, hasReady, hadReady, d.Desired)
	case asked > d.Desired+blocked && !(holds && waits):
		return fmt.Sprintf("R1: %s requests %d machines instead of %d, and none of them waits for another.", d.Reserve.Name, asked, d.Desired)
	case asked > max(before, 2*d.Desired+blocked):
		return fmt.Sprintf("R1: %s requests %d machines instead of %d.", d.Reserve.Name, asked, d.Desired)
	}
	return ""
}

// recordTurn records in which direction a write changes a request, and returns the law that it
// breaks if it takes back what was decided before, though the controller has learned no fact since:
// nothing that a user, a cloud or a machine did.
func (w *WishWorld) recordTurn(n int, next wishWrite) string {
	if n >= 2 {
		return ""
	}
	asked, was := w.targets[n].is.asked, w.turns[n]
	if w.turns[n].turnsBack(directionOf(asked, next.asked)) {
		return fmt.Sprintf("I4: The request of %s was %s to %d, and is to be %d again, though no fact has changed.", name(n), was, asked, next.asked)
	}
	return ""
}

// roomBelowMax is how many spare machines a MachineDeployment may have.
func (t *target) roomBelowMax() int { return max(0, int(t.limit)-baseReplicas) }

// effective returns how many machines a MachineDeployment keeps in reserve, and the law that the
// number breaks.
func (t *target) effective(i int) (e reserve.EffectiveExcess, broken string) {
	w, err := pool.WishesOf(t.object(i))
	if err != nil {
		return e, err.Error()
	}
	e, err = reserve.Effective(w, baseReplicas, nil)
	switch wish := min(max(int(t.own), int(t.asked)), t.roomBelowMax()); {
	case err != nil:
		broken = err.Error()
	case e.Excess > t.roomBelowMax():
		broken = fmt.Sprintf("I1: %s keeps %d machines in reserve, and has room for %d.", name(i), e.Excess, t.roomBelowMax())
	case e.Excess != wish:
		broken = fmt.Sprintf("R3: %s keeps %d machines in reserve instead of %d.", name(i), e.Excess, wish)
	}
	return e, broken
}

// Rest returns what is wrong with a world at rest.
func (m *Wishes) Rest(w WishWorld) string {
	var most [2]struct{ machines, by uint8 }
	for _, i := range []int{1, 0} { // in the order of their names
		r := &w.wishes[i].is
		for p, one := range r.parts {
			if r.there && w.targets[p].is.there && one.machines > most[p].machines {
				most[p].machines, most[p].by = one.machines, uint8(i+1)
			}
		}
		if wrong := w.unsettled(i); r.there && wrong != "" {
			return wrong
		}
	}
	for i := range w.targets {
		t := &w.targets[i].is
		if t.asked != most[i].machines || t.by != most[i].by {
			return fmt.Sprintf("I5: At rest, %s has the request %s instead of %s.", name(i), requestText(t.asked, t.by), requestText(most[i].machines, most[i].by))
		}
	}
	return ""
}

// unsettled returns what is wrong at rest with how a Reserve's machines are spread. Machines that
// cannot be created do not count, and others stand in for them.
func (w *WishWorld) unsettled(i int) string {
	r := &w.wishes[i].is
	usable, room, out := 0, 0, false
	var left [2]int
	for p, one := range r.parts[:2-i] {
		t := &w.targets[p].is
		if !t.there {
			continue
		}
		has, most := int(one.machines), t.roomBelowMax()
		left[p] = most - has
		if w.out[p] {
			out = true
			if has > int(t.ready)+1 {
				return fmt.Sprintf("R4: At rest, %s requests %d machines of %s, where %d are ready and no more can be created.", wishNames[i], has, name(p), t.ready)
			}
			has, most = min(has, int(t.ready)), min(most, int(t.ready))
		}
		usable, room = usable+has, room+most
	}
	if usable != min(int(r.amount), room) {
		return fmt.Sprintf("I5: At rest, %s gets %d machines, of %d that it requests and %d that there is room for.", wishNames[i], usable, r.amount, room)
	}
	a, b := int(r.parts[0].machines), int(r.parts[1].machines)
	if even := a-b >= -1 && a-b <= 1; i == 0 && !out && !even && (a > b && left[1] > 0 || b > a && left[0] > 0) {
		return fmt.Sprintf("R2: At rest, %s requests %d machines of a and %d of b.", wishNames[i], a, b)
	}
	return ""
}
