// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/requeue"
)

// divideMaxima moves maximums to the clusters that need more. If none does, they stay. What
// runs stays also where there is no room for it before another cluster confirms what is being sent.
func (p *Plan) divideMaxima(r rules, now time.Time) {
	room, soon, running, moving := r.max, r.max, int64(0), false
	var hands []*ClusterPlan
	for _, s := range p.clusterPlans() {
		moving = moving || s.fresh
		switch {
		case s.Lent: // it keeps its bounds
		case s.role == idle || s.role == waiting || s.role == leaving && !s.isFixed():
			s.Aim = Bounds{}
			room, soon = room-s.Left, soon-s.Left
		case s.isFixed():
			s.Aim.Max = s.heldBounds().Max
			room, soon = room-max(s.Aim.Max, s.Left), soon-max(s.leastMaximum(), s.Left)
		default:
			hands, running = append(hands, s), running+min(s.Confirmed.Max, max(1, s.desired()))
		}
	}
	p.Room = max(0, room, min(soon, running))
	if !mayRest(hands, p.Room, moving) {
		p.partition(r, now, hands)
	}
	for _, s := range hands {
		s.Aim.Min = min(s.Aim.Min, s.Aim.Max)
		if s.asksForMore() {
			p.Missing += max(0, s.cluster.Local.Demand-s.Aim.Max)
		}
	}
}

// mayRest reports whether maximums may stay as they are: no cluster needs more, joins or leaves, and
// the whole maximum is given out. What is left over while bounds move may be for a joining cluster.
func mayRest(hands []*ClusterPlan, room int64, moving bool) bool {
	var sum, highest int64
	for _, s := range hands {
		switch {
		case s.role == joining, s.needsMore() && s.Confirmed.Max < s.max, s.Confirmed.Max > s.max, s.Confirmed.Max < s.Aim.Min:
			return false
		}
		sum, highest = sum+s.Confirmed.Max, highest+s.max
	}
	whole := min(room, highest)
	return sum == whole || moving && sum < whole
}

// partition divides the room: to each what it runs, then what it wants, then the rest to all. Clusters
// keep their headroom, too, while none joins and none asks for more than its maximum.
func (p *Plan) partition(r rules, now time.Time, hands []*ClusterPlan) {
	asked := slices.ContainsFunc(hands, func(s *ClusterPlan) bool { return s.role == joining || s.asksForMore() })
	needed := asked || slices.ContainsFunc(hands, (*ClusterPlan).needsMore)
	holds := []hold{keepHeadroom, keepCooling, keepMinima, keepRunning}
	if asked {
		holds = holds[1:]
	}
	for _, hold := range holds {
		var floors int64
		for _, s := range hands {
			s.setMaximum(r, now, needed, hold)
			floors += s.floor
		}
		if floors <= p.Room {
			break
		}
	}
	for _, s := range hands { // once a cluster that keeps its maximum now may give some of it, the plan may change
		if left := s.cooling(r, now); needed && s.Confirmed.Max > s.desired()+r.headroom {
			p.Again = requeue.Sooner(p.Again, left)
		}
	}
	p.setJoiningWants(hands)
	lowered := distributeShares(p.Room, targetsOf(hands, func(_ int, s *ClusterPlan) (lo, hi, current int64) { return 1, max(1, s.floor), s.Confirmed.Max }, true))
	first := distributeShares(p.Room, targetsOf(hands, func(i int, s *ClusterPlan) (lo, hi, current int64) {
		return lowered[i], max(lowered[i], s.want), s.Confirmed.Max
	}, true))
	for i, n := range distributeShares(p.Room, targetsOf(hands, func(i int, s *ClusterPlan) (lo, hi, current int64) {
		return first[i], max(first[i], s.cap), s.Confirmed.Max
	}, true)) {
		hands[i].Aim.Max = n
	}
}

// hold returns how much a cluster keeps when maxima are divided. Less is tried only if the sum does
// not fit.
type hold int

const (
	keepHeadroom hold = iota // its headroom and what it was given a moment ago
	keepCooling              // what it was given a moment ago
	keepMinima               // its minimum and what it runs
	keepRunning              // what it runs
)

// setMaximum sets the bounds of a cluster's part of the maximum.
func (s *ClusterPlan) setMaximum(r rules, now time.Time, needed bool, hold hold) {
	if s.cap = s.max; s.stuck && needed {
		s.cap = max(s.usable(r), min(s.Aim.Min, s.max))
	}
	s.floor = max(1, min(s.desired(), s.cap))
	if hold <= keepMinima {
		s.floor = max(s.floor, min(s.Aim.Min, s.cap))
	}
	if s.role == used && hold == keepHeadroom {
		s.floor = max(s.floor, min(s.Confirmed.Max, s.desired()+r.headroom, s.cap))
	}
	if s.role == used && hold <= keepCooling {
		if s.frozen() || s.cooling(r, now) > 0 {
			s.floor = max(s.floor, min(s.Confirmed.Max, s.cap))
		}
		s.floor = max(s.floor, min(s.Confirmed.Max-r.step, s.cap))
	}
	s.want = min(s.cap, max(s.floor, s.desired()+r.headroom))
	switch {
	case s.frozen() && hold <= keepCooling:
		s.cap, s.want = s.floor, s.floor
	case s.asksForMore():
		s.want = min(s.cap, max(s.floor, s.cluster.Local.Demand, s.Confirmed.Max+1))
	case s.needsMore():
		s.want = min(s.cap, max(s.want, s.Confirmed.Max+1))
	}
}

// setJoiningWants sets what joining clusters want: a part of what is to spare, by weight, unless a
// cluster of a lower tier needs it.
func (p *Plan) setJoiningWants(hands []*ClusterPlan) {
	first := slices.MinFunc(hands, func(a, b *ClusterPlan) int { return cmp.Compare(a.tier, b.tier) }).tier
	spare, weights := p.Room, int64(0)
	for _, s := range hands {
		if spare -= s.floor; s.tier == first {
			weights += s.weight
		}
	}
	for _, s := range hands {
		if s.role == joining && s.tier == first {
			s.want = min(s.cap, max(s.floor, spare*s.weight/weights))
		} else if s.role == joining {
			s.want = s.floor
		}
	}
}
