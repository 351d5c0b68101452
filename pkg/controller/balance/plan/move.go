// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
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
