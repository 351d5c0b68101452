// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// finish takes every move in progress one step further, even if its cause no longer exists.
func (r *round) finish() {
	// Members that promise a machine come first: nothing is given to one that may wait for days.
	for _, z := range r.zones {
		if z.promises() {
			r.finishPromise(z)
		}
	}
	for _, z := range r.zones {
		if z.move == nil {
			continue
		}
		switch {
		case z.Object.DeletionTimestamp != nil || z.stalled || z.next.move != z.move:
		case len(z.move.To) > 0:
			r.finishGiving(z)
		case z.waits() && z.mode != v1alpha1.BalanceContinuous:
			r.drop(z)
		case !z.waits() && !r.gives(z.move.From, z.move.ID):
			z.next.move = nil
		}
	}
}

// gives reports whether a member still gives replicas in a move.
func (r *round) gives(name, id string) bool {
	from := r.byName[name]
	return from != nil && from.Object.DeletionTimestamp == nil && from.move != nil && from.move.ID == id && len(from.move.To) > 0
}

// promises reports whether a member gives a replica together with its machine.
func (z *zone) promises() bool {
	return z.Object.DeletionTimestamp == nil && z.move != nil && len(z.move.To) > 0 && z.move.Machine != ""
}

// finishPromise deletes a machine whose replica has arrived. If replicas were set to 0 meanwhile, no machine is left to delete.
func (r *round) finishPromise(z *zone) {
	switch {
	case z.replicas == 0:
		z.next.move = nil
		z.next.why = "end a move from a MachineDeployment that was scaled to 0"
	case r.Unreachable != "":
		z.stall(ReasonUnreachable, r.Unreachable)
	case r.arrived(z):
		r.settleMachine(z)
	}
}

// stall leaves a move as it is until a machine can be deleted, which can take days. Meanwhile, growth stays where it is requested.
func (z *zone) stall(reason, why string) {
	z.verdict, z.stalled = not(reason, why), true
	z.next.applied = z.next.replicas
}

// arrived reports whether everything that a member gives has arrived.
func (r *round) arrived(z *zone) bool {
	for name := range z.move.To {
		if taker := r.byName[name]; taker == nil || taker.Object.DeletionTimestamp != nil || !taker.took(z) {
			return false
		}
	}
	return true
}

// took reports whether a member has taken what another gives.
func (z *zone) took(from *zone) bool {
	return z.move != nil && z.move.ID == from.move.ID && z.move.From == from.name && z.move.Taken > 0
}

// finishGiving gives replicas to the members that do not have them yet. After the last one, it removes the growth that was split from
// the member that gives.
func (r *round) finishGiving(z *zone) {
	for _, name := range slices.Sorted(maps.Keys(z.move.To)) {
		switch taker := r.byName[name]; {
		case taker != nil && taker.Object.DeletionTimestamp == nil && taker.took(z):
		case taker == nil, taker.Object.DeletionTimestamp != nil, r.stalled(taker), r.waitsFor(taker, z.name, map[string]bool{}):
			z.forget(name)
			return
		default:
			r.take(taker, z, int(z.move.To[name]))
		}
	}
	if z.move.Machine == "" && r.arrived(z) {
		r.settle(z)
	}
}

// waitsFor reports whether a member must wait for the one of that name before it can take, directly or through others: for those that
// it gives to, and for the one that it took from. If two members waited for each other, neither would ever take.
func (r *round) waitsFor(z *zone, name string, asked map[string]bool) bool {
	if z == nil || z.move == nil || z.waits() || asked[z.name] {
		return false
	}
	asked[z.name] = true
	before := slices.Collect(maps.Keys(z.move.To))
	if z.move.From != "" && r.gives(z.move.From, z.move.ID) {
		before = append(before, z.move.From)
	}
	return slices.ContainsFunc(before, func(other string) bool {
		return other == name || r.waitsFor(r.byName[other], name, asked)
	})
}

// forget removes a member that no longer exists from a move.
func (z *zone) forget(name string) {
	left := *z.move
	left.To = maps.Clone(left.To)
	delete(left.To, name)
	z.next.move = &left
	if len(left.To) == 0 {
		z.next.move = nil
	}
}

// take gives replicas to members. A member with a part in another move gets them after that move, which records what it took.
func (r *round) take(z, from *zone, n int) {
	if z.next.move != z.move || z.move != nil && !z.waits() {
		return
	}
	z.next.replicas += n
	z.next.applied += n
	z.next.move = &v1alpha1.Move{ID: from.move.ID, From: from.name, Taken: int32(n)}
	z.next.why = "take replicas from " + from.name
}

// settle removes replicas that have arrived elsewhere from those that are not applied. If a user lowered replicas meanwhile, what is
// applied stays.
func (r *round) settle(z *zone) {
	moved := 0
	for _, n := range z.move.To {
		moved += int(n)
	}
	z.next.replicas = max(z.replicas-moved, min(z.replicas, z.applied))
	z.next.applied = min(z.applied, z.next.replicas)
	z.next.move = nil
	z.next.why = "split growth"
	z.next.tell(News{Reason: EventMoved, Message: fmt.Sprintf("Moved %d of the requested replicas to %s", moved, targets(z.move.To))})
	r.moves += moved
}

// targets returns, for example, "pool-z2 (2), pool-z3 (2)".
func targets(to map[string]int32) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s (%d)", name, to[name])
	}
	return text
}

// settleMachine removes one replica and names its machine for deletion, once the machine that replaces it serves.
func (r *round) settleMachine(z *zone) {
	var taker *zone
	for _, name := range slices.Sorted(maps.Keys(z.move.To)) {
		// Growth that was requested meanwhile is not applied, and has no machines yet.
		if taker = r.byName[name]; taker.health.serving < taker.applied {
			z.await(taker)
			return
		}
	}
	if z.Rollout.Spread {
		z.stall("Waiting", z.name+" is being updated")
		return
	}
	if r.unhealthy() {
		z.stall("Waiting", unhealthy)
		return
	}
	victim, why := r.victim(z, taker, z.move.Machine)
	if why != "" {
		z.stall(reasonOf(why), why)
		return
	}
	if victim != z.move.Machine {
		again := *z.move
		again.Machine = victim
		z.next.move = &again
		return
	}
	z.next.replicas = z.replicas - 1
	z.next.applied = max(0, min(z.applied-1, z.next.replicas))
	z.next.move, z.next.gone = nil, victim
	z.next.why = "hand a replica over"
	z.next.tell(News{Reason: EventMoved, Message: fmt.Sprintf("Machine %s is deleted because its replica moved to %s", victim, targets(z.move.To))})
	r.moves++
}

// await waits for the replacement: for seconds, or for days if its zone creates no machines.
func (z *zone) await(taker *zone) {
	why := "waiting until the machine in " + taker.name + " accepts pods"
	if taker.health.blocked || taker.closed() || taker.Rollout.Spread {
		z.stall("Waiting", why)
		return
	}
	z.verdict = not("Moving", why)
}

func (d *draft) tell(n News) { d.news = append(d.news, n) }
