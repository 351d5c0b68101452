// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// continueMoves takes every move in progress one step further, even if its cause no longer exists.
func (r *round) continueMoves() {
	// Members that promise a machine come first: nothing is given to one that may wait for days.
	for _, z := range r.zones {
		if z.promises() {
			r.continuePromise(z)
		}
	}
	for _, z := range r.zones {
		if z.declined != "" && !r.isOffered(z.declined, z) {
			z.next.declined = ""
			z.next.why = "forget a move that it declined"
		}
	}
	for _, z := range r.zones {
		if z.move == nil {
			continue
		}
		switch {
		case z.Object.DeletionTimestamp != nil || z.stalled || z.next.move != z.move:
		case len(z.move.To) > 0:
			r.continueGiving(z)
		case z.moveNotBegun() && z.mode != v1alpha1.BalanceContinuous:
			r.dropMove(z)
		case !z.moveNotBegun() && !r.stillGives(z.move.From, z.move.ID):
			z.next.move = nil
		}
	}
}

// stillGives reports whether a member still gives replicas in a move.
func (r *round) stillGives(name, id string) bool {
	from := r.byName[name]
	return from != nil && from.Object.DeletionTimestamp == nil && from.move != nil && from.move.ID == id && len(from.move.To) > 0
}

// promises reports whether a member gives a replica together with its machine.
func (z *zone) promises() bool {
	return z.Object.DeletionTimestamp == nil && z.move != nil && len(z.move.To) > 0 && z.move.Machine != ""
}

// continuePromise deletes a machine whose replica has arrived. If replicas were set to 0 meanwhile,
// no machine is left to delete.
func (r *round) continuePromise(z *zone) {
	switch {
	case z.replicas == 0:
		z.next.move = nil
		z.next.why = "end a move from a MachineDeployment that was scaled to 0"
	case r.Unreachable != "":
		z.pauseMove(ReasonUnreachable, r.Unreachable)
	case r.arrived(z):
		r.finishMove(z)
	}
}

// pauseMove leaves a move as it is until a machine can be deleted, which can take days. Meanwhile,
// growth stays where it is requested; see [round.awaitMove].
func (z *zone) pauseMove(reason, why string) {
	z.verdict, z.stalled = falseVerdict(reason, why), true
}

// arrived reports whether everything that a member gives has arrived.
func (r *round) arrived(z *zone) bool {
	for name := range z.move.To {
		if taker := r.byName[name]; taker == nil || taker.Object.DeletionTimestamp != nil || !taker.hasTaken(z) {
			return false
		}
	}
	return true
}

// hasTaken reports whether a member has taken what another gives.
func (z *zone) hasTaken(from *zone) bool {
	return z.move != nil && z.move.ID == from.move.ID && z.move.From == from.name && z.move.Taken > 0
}

// isOffered reports whether a move of this ID gives replicas to a member.
func (r *round) isOffered(id string, to *zone) bool {
	return slices.ContainsFunc(r.zones, func(from *zone) bool { return from.move != nil && from.move.ID == id && from.move.To[to.name] > 0 })
}

// continueGiving gives replicas to the members that do not have them yet. After the last one, it
// removes the growth that was split from the member that gives.
//
// A plan can be made from a view that shows none of the latest writes, by this process or by its
// predecessor, and the version of a member guards only what is written to that member. So a member
// that cannot take records that first, and only then the other one keeps the replicas.
func (r *round) continueGiving(z *zone) {
	for _, name := range slices.Sorted(maps.Keys(z.move.To)) {
		switch taker := r.byName[name]; {
		case taker == nil, taker.Object.DeletionTimestamp != nil:
			z.dropTaker(name)
			return
		case taker.hasTaken(z):
		case taker.declined == z.move.ID:
			z.dropTaker(name)
			return
		case r.stalled(taker), r.waitsFor(taker, z.name, map[string]bool{}), !taker.hasRoom(int(z.move.To[name])):
			taker.decline(z)
		default:
			r.takeReplicas(taker, z, int(z.move.To[name]))
		}
	}
	if z.move.Machine == "" && r.arrived(z) {
		r.finishSplit(z)
	}
}

// waitsFor reports whether a member must wait for the one of that name before it can take, directly
// or through others: for those that it gives to, and for the one that it took from. If two members
// waited for each other, neither would ever take.
func (r *round) waitsFor(z *zone, name string, asked map[string]bool) bool {
	if z == nil || z.moveNotBegun() || asked[z.name] {
		return false
	}
	asked[z.name] = true
	before := slices.Collect(maps.Keys(z.move.To))
	if r.stillGives(z.move.From, z.move.ID) {
		before = append(before, z.move.From)
	}
	return slices.ContainsFunc(before, func(other string) bool {
		return other == name || r.waitsFor(r.byName[other], name, asked)
	})
}

// hasRoom reports whether a member may take this many replicas. It had room when they were
// promised, but may have grown since, or have another max, or bounds that cannot be read.
func (z *zone) hasRoom(n int) bool {
	return !z.invalidBounds && z.replicas+n <= z.maxReplicas(z.replicas)
}

// decline records that a member takes nothing from another. It declines one move at a time.
func (z *zone) decline(from *zone) {
	if z.next.declined == "" {
		z.next.declined = from.move.ID
		z.next.why = "decline replicas from " + from.name
	}
}

// dropTaker removes a member from a move: it no longer exists, or has declined.
func (z *zone) dropTaker(name string) {
	left := *z.move
	left.To = maps.Clone(left.To)
	delete(left.To, name)
	z.next.move = &left
	z.next.why = "keep what " + name + " does not take"
	if len(left.To) == 0 {
		z.next.move = nil
	}
}

// takeReplicas gives replicas to a member. If it has a part in another move, it gets them after
// that move, which records what it took.
func (r *round) takeReplicas(z, from *zone, n int) {
	if z.next.move != z.move || hasBegun(z.move) {
		return
	}
	z.next.replicas += n
	z.next.applied += n
	z.next.move = &v1alpha1.Move{ID: from.move.ID, From: from.name, Taken: int32(n)}
	z.next.why = "take replicas from " + from.name
}

// finishSplit removes replicas that have arrived elsewhere from those that are not applied. If a
// user lowered replicas meanwhile, what is applied stays.
func (r *round) finishSplit(z *zone) {
	moved := 0
	for _, n := range z.move.To {
		moved += int(n)
	}
	z.next.replicas = max(z.replicas-moved, z.applied)
	z.next.move = nil
	z.next.why = "split growth"
	z.next.addEvent(Event{Reason: EventMoved, Message: fmt.Sprintf("Moved %d of the requested replicas to %s", moved, takersText(z.move.To))})
	z.next.moves = moved
}

// takersText returns, for example, "pool-z2 (2), pool-z3 (2)".
func takersText(to map[string]int32) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s (%d)", name, to[name])
	}
	return text
}

// finishMove removes one replica and names its machine for deletion, once the machine that replaces
// it serves.
func (r *round) finishMove(z *zone) {
	if r.unhealthy() {
		z.pauseMove("Waiting", unhealthy)
		return
	}
	var taker *zone
	for _, name := range slices.Sorted(maps.Keys(z.move.To)) {
		// Growth that was requested meanwhile is not applied, and has no machines yet.
		if taker = r.byName[name]; taker.health.serving < taker.applied {
			z.awaitTaker(taker)
			return
		}
	}
	if z.Rollout.Spread {
		z.pauseMove("Waiting", z.name+" is being updated")
		return
	}
	victim, why := r.victim(z, taker, z.move.Machine)
	if why != "" {
		z.pauseMove(reasonOf(why), why)
		return
	}
	if victim != z.move.Machine {
		again := *z.move
		again.Machine = victim
		z.next.move = &again
		return
	}
	z.next.replicas = z.replicas - 1
	z.next.applied = max(0, z.applied-1)
	z.next.move, z.next.gone = nil, victim
	z.next.why = "hand a replica over"
	z.next.addEvent(Event{Reason: EventMoved, Message: fmt.Sprintf("Deleting machine %s, because its replica moved to %s", victim, takersText(z.move.To))})
	z.next.moves = 1
}

// awaitTaker waits for the replacement: for seconds, or for days if its zone creates no machines, or
// keeps one that failed.
func (z *zone) awaitTaker(taker *zone) {
	why := "waiting until the machine in " + taker.name + " accepts pods"
	if taker.health.blocked || taker.health.kept || taker.excluded() || taker.Rollout.Spread {
		z.pauseMove("Waiting", why)
		return
	}
	z.verdict = falseVerdict("Moving", why)
}

func (d *draft) addEvent(n Event) { d.events = append(d.events, n) }
