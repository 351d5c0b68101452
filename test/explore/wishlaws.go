// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	reservesplan "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

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
