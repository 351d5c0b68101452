// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
)

// Group is one of several similar MachineDeployments over which growth is split.
type Group struct {
	Name string
	// Replicas are those that it has now, and keeps.
	Replicas int
	// Max is the most that it may get; it may already have more.
	Max int
}

// SplitEvenly adds machines to groups so that they become as even as possible: the smallest grow
// first, none exceeds its max, and none loses any. Ties go to favoured groups, then to the first by
// name. The second result is the number without room.
func SplitEvenly(groups []Group, more int, favoured string) (sizes []int, left int) {
	targets := make([]distribute.Target, len(groups))
	total := int64(more)
	for i, g := range groups {
		total += int64(g.Replicas)
		targets[i] = distribute.Target{
			Key: g.Name, Weight: 1, Min: int64(g.Replicas), Max: int64(max(g.Max, g.Replicas)), Current: int64(g.Replicas),
		}
		if g.Name == favoured {
			targets[i].Current += int64(more)
		}
	}
	result, err := distribute.Distribute(total, targets, distribute.Options{})
	sizes = make([]int, len(groups))
	for i, g := range groups {
		if sizes[i] = g.Replicas; err == nil {
			sizes[i] = int(result.Replicas[i])
		}
	}
	if err != nil {
		return sizes, more
	}
	return sizes, int(result.Overflow)
}

// splitGrowth splits one member's growth, and what it cannot create, over its group. It reports
// whether it began a move.
func (r *round) splitGrowth(group []*zone) bool {
	for _, z := range group {
		if !z.hasGrowthToGive() {
			continue
		}
		base, more := z.growthToGive()
		groups := []Group{{Name: z.name, Replicas: base, Max: z.maxWithProbe(base)}}
		var takers []*zone
		for _, other := range group {
			if other == z || other.excluded() || other.invalidBounds {
				continue
			}
			if why, barred := r.waitingPodBarred(z, other); barred {
				z.verdict = falseVerdict("PodsBound", why)
				r.blocks[z.name] = "PodsBound"
				continue
			}
			takers = append(takers, other)
			groups = append(groups, Group{Name: other.name, Replicas: other.replicas, Max: other.maxWithProbe(other.replicas)})
		}
		sizes, left := SplitEvenly(groups, more, z.name)
		if r.giveGrowth(z, takers, sizes, left) {
			return true
		}
	}
	return false
}

// awaitsSimilar reports whether it is not known which members are similar to this one, and soon will be.
func (r *round) awaitsSimilar(z *zone) bool {
	return r.Starting && slices.ContainsFunc(r.zones, func(other *zone) bool {
		return other.pool == z.pool && other.Template == nil && other.Settling
	})
}

// awaitSimilar reports that growth waits until that is known.
func awaitSimilar(group []*zone) {
	for _, z := range group {
		if z.verdict.reason == "" {
			z.verdict = falseVerdict("Waiting", "growth waits until Nodes show which MachineDeployments are similar")
		}
	}
}

// hasGrowthToGive reports whether a member has replicas without machines that others may take.
func (z *zone) hasGrowthToGive() bool {
	return !z.excluded() && (z.growth() > 0 || z.uncreated() > 0)
}

// growthToGive returns the replicas of a member that have no machine yet: beyond base, this number
// more.
func (z *zone) growthToGive() (base, more int) {
	base = z.applied - z.uncreated()
	return base, z.replicas - base
}

// maxWithProbe returns the most that a member may have, if it has this number now. A member that
// fails to create machines gets at most one, as a probe, and no other before that one is ready.
func (z *zone) maxWithProbe(has int) int {
	switch {
	case z.health.blocked && z.health.probing && !z.awaitsMachine():
		return min(z.maxReplicas(has), has+1)
	case z.health.blocked:
		return has
	}
	return z.maxReplicas(has)
}

// awaitsMachine reports whether one of the machines that are to serve boots, or is yet to be created.
func (z *zone) awaitsMachine() bool {
	return z.health.booting > 0 || z.health.working+z.health.stuck < z.applied
}

// maxTakers is how many members a move gives to, so that it fits into an annotation. What others are
// to get is given to them by the next moves.
const maxTakers = 100

// giveGrowth records what a member gives to others, and applies what it keeps. What no member has
// room for stays where it was requested.
func (r *round) giveGrowth(z *zone, takers []*zone, sizes []int, left int) bool {
	to, given := map[string]int32{}, 0
	for i, taker := range takers {
		if n := sizes[i+1] - taker.replicas; n > 0 {
			given += n
			if len(to) < maxTakers {
				to[taker.name] = int32(n)
			}
		}
	}
	if left > 0 && z.verdict.reason == "" {
		z.verdict = falseVerdict("NoRoom", "no similar MachineDeployment has room for the requested growth"+failingText(append(takers, z)))
		r.blocks[z.name] = "NoRoom"
	}
	z.next.applied = z.replicas - given
	if given == 0 {
		return false
	}
	z.next.move = &v1alpha1.Move{ID: z.Object.ResourceVersion, To: to}
	z.next.why = "split growth"
	return true
}
