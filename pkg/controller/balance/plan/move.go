// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// moveOne moves one machine of a group from the member with too many to the member with too few, by
// way of the reserve.
func (r *round) moveOne(group []*zone) {
	goal := evenReplicas(group)
	from, to := surplus(group, goal), deficit(group, goal)
	pending := pendingTaker(group)
	if pending != nil && goal[pending] <= pending.replicas {
		r.dropMove(pending)
		return
	}
	if from == nil { // and so is to: the goals have the sum of the replicas
		return
	}
	if pending != nil {
		to = pending
	}
	if why := r.obstacle(group, from, to); why != "" {
		r.recordWait(group, from, "Waiting", why)
		return
	}
	victim, why := r.victim(from, to, "")
	if victim == "" {
		r.recordWait(group, from, reasonOf(why), why)
		if pending != nil {
			r.dropMove(pending)
		}
		return
	}
	for _, z := range group {
		if !z.excluded() {
			z.verdict = falseVerdict("Moving", fmt.Sprintf("a machine is being moved from %s to %s", from.name, to.name))
		}
	}
	if pending == nil {
		r.askReserve(from, to)
		return
	}
	if to.health.reserve >= to.wantsReserve() {
		from.next.move = &v1alpha1.Move{ID: to.move.ID, To: map[string]int32{to.name: 1}, Machine: victim}
		from.next.why = "name a machine to move"
		if to.move.From != from.name {
			to.next.move = &v1alpha1.Move{ID: to.move.ID, From: from.name, Reserve: to.move.Reserve}
		}
	}
}

// recordWait records why nothing moves.
func (r *round) recordWait(group []*zone, from *zone, reason, why string) {
	for _, z := range group {
		if z.verdict.reason == "" {
			z.verdict = falseVerdict(reason, why)
		}
	}
	if reason != "Waiting" {
		r.blocks[from.name] = reason
	}
}

// evenReplicas returns how many replicas each member should have. Machines in reserve do not count.
func evenReplicas(group []*zone) map[*zone]int {
	targets := make([]distribute.Target, len(group))
	var total int64
	for i, z := range group {
		total += int64(z.replicas)
		targets[i] = distribute.Target{Key: z.name, Weight: 1, Min: int64(z.minReplicas()), Max: int64(z.maxWithProbe(z.replicas)), Current: int64(z.replicas)}
		switch {
		case z.excluded() || z.Rollout.Spread || z.invalidBounds:
			targets[i].Min, targets[i].Max = int64(z.replicas), int64(z.replicas)
		case z.fixedReserve: // no machine would be created in reserve there
			targets[i].Max = int64(z.replicas)
		}
	}
	goal := map[*zone]int{}
	result, err := distribute.Distribute(total, targets, distribute.Options{})
	for i, z := range group {
		if goal[z] = z.replicas; err == nil {
			goal[z] = int(result.Replicas[i])
		}
	}
	return goal
}

// surplus returns the member that exceeds its goal most, nil if none does.
func surplus(group []*zone, goal map[*zone]int) *zone {
	return largestGap(group, func(z *zone) int { return z.replicas - goal[z] })
}

func deficit(group []*zone, goal map[*zone]int) *zone {
	return largestGap(group, func(z *zone) int { return goal[z] - z.replicas })
}

// largestGap returns the member with the largest positive gap. Ties go to the first.
func largestGap(group []*zone, gap func(*zone) int) *zone {
	best := slices.MaxFunc(group, func(a, b *zone) int { return cmp.Compare(gap(a), gap(b)) })
	if gap(best) <= 0 {
		return nil
	}
	return best
}

// pendingTaker returns the member that creates a machine for a move, nil if none does. A member that
// is being deleted creates none.
func pendingTaker(group []*zone) *zone {
	for _, z := range group {
		if z.Object.DeletionTimestamp == nil && z.move != nil && z.move.From != "" && z.move.Taken == 0 {
			return z
		}
	}
	return nil
}

// dropMove returns a machine that was created for a move to the reserve, and requests no other for
// a while.
func (r *round) dropMove(z *zone) {
	z.next.move = nil
	z.next.why = "drop a move"
	r.pauseMoves(z)
}

func (r *round) pauseMoves(z *zone) { r.paused[z.name] = r.Now.Add(afterDrop) }

// afterDrop is how long a member gets no other machine after one was created in vain.
const afterDrop = 5 * time.Minute

// obstacle returns what must end before the next machine moves.
func (r *round) obstacle(group []*zone, from, to *zone) string {
	for _, z := range group {
		if z.health.leaving > 0 {
			return "a machine of " + z.name + " is leaving"
		}
	}
	for _, z := range []*zone{from, to} {
		switch {
		case z.growth() > 0:
			return z.name + " is growing"
		case z.health.serving < z.replicas:
			return "not all machines of " + z.name + " are ready"
		}
	}
	if r.unhealthy() {
		return unhealthy
	}
	switch {
	case to.move == nil && r.Now.Before(r.Memory.Paused[to.name]):
		return "the last machine for a move to " + to.name + " did not become ready"
	case to.move != nil && to.health.reserve > 0 && to.health.open == 0:
		return "the machines in reserve of " + to.name + " are cordoned"
	}
	return ""
}

// askReserve requests a machine where a replica is to go, beside what a Reserve requests there beyond
// its share. If that would exceed its bounds, its present reserve is used.
func (r *round) askReserve(from, to *zone) {
	n := 1 + to.beyondShare()
	if to.bounds != nil && to.replicas+to.presentExcess()+1 > int(to.bounds.Max) {
		n = 0
	}
	to.next.move = &v1alpha1.Move{ID: to.Object.ResourceVersion, From: from.name, Reserve: pool.ClampInt32(n)}
	to.next.why = "create a machine for a move from " + from.name
}

// wantsReserve returns how many machines must be ready in reserve before one of them takes a
// replica.
func (z *zone) wantsReserve() int {
	return max(1, min(z.presentExcess(), z.maxReplicas(z.replicas)-z.replicas))
}

// unevenness is how far the replicas of a group are from even: the largest less the smallest.
func unevenness(group []*zone) int {
	byReplicas := func(a, b *zone) int { return a.replicas - b.replicas }
	return slices.MaxFunc(group, byReplicas).replicas - slices.MinFunc(group, byReplicas).replicas
}

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
