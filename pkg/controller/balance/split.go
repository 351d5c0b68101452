// SPDX-License-Identifier: Apache-2.0

package balance

import (
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

// Split adds machines to groups so that they become as even as possible: the smallest grow first, none exceeds its max, and none
// loses any. Ties go to favoured groups, then to the first by name. The second result is the number without room.
func Split(groups []Group, more int, favoured string) (sizes []int, left int) {
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

// split splits one member's growth, and what it cannot create, over its group. It reports whether it began a move.
func (r *round) split(group []*zone) bool {
	for _, z := range group {
		if !z.loosens() {
			continue
		}
		base, more := z.loose()
		groups := []Group{{Name: z.name, Replicas: base, Max: z.room(base)}}
		var takers []*zone
		for _, other := range group {
			if other == z || other.closed() {
				continue
			}
			if why, barred := r.barred(z, other); barred {
				z.verdict = not("PodsBound", why)
				r.blocks[z.name] = "PodsBound"
				continue
			}
			takers = append(takers, other)
			groups = append(groups, Group{Name: other.name, Replicas: other.replicas, Max: other.room(other.replicas)})
		}
		sizes, left := Split(groups, more, z.name)
		if r.give(z, takers, sizes, left) {
			return true
		}
	}
	return false
}

// loosens reports whether a member has replicas without machines that others may take.
func (z *zone) loosens() bool {
	return !z.closed() && (z.growth() > 0 || z.health.blocked && z.unmade() > 0)
}

// loose returns the replicas of a member that have no machine yet: beyond base, this number more.
func (z *zone) loose() (base, more int) {
	base = min(z.applied, z.replicas)
	if z.health.blocked {
		base -= z.unmade()
	}
	return base, z.replicas - base
}

// room returns the most that a member may have, if it has this number now. A member that fails to create machines gets at most one,
// as a probe.
func (z *zone) room(has int) int {
	switch {
	case z.health.blocked && z.health.probing:
		return min(z.limit(has), has+1)
	case z.health.blocked:
		return has
	}
	return z.limit(has)
}

// give records what a member gives to others, and applies what it keeps. What no member has room for stays where it was requested.
func (r *round) give(z *zone, takers []*zone, sizes []int, left int) bool {
	to, moved := map[string]int32{}, 0
	for i, taker := range takers {
		if n := sizes[i+1] - taker.replicas; n > 0 {
			to[taker.name] = int32(n)
			moved += n
		}
	}
	if left > 0 && z.verdict.reason == "" {
		z.verdict = not("NoRoom", "no similar MachineDeployment has room for the requested growth"+ailing(append(takers, z)))
		r.blocks[z.name] = "NoRoom"
	}
	if moved == 0 {
		z.next.applied, z.next.held = z.replicas, true
		return false
	}
	z.next.applied, z.next.held = z.replicas-moved, true
	z.next.move = &v1alpha1.Move{ID: z.Object.ResourceVersion, To: to}
	z.next.why = "split growth"
	return true
}
