// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
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

// divideMinima sets goals for minima that add up to the desired number. It does not change those
// that already do.
func (p *Plan) divideMinima(r rules, now time.Time) {
	total, room := r.min, r.max
	var hands []*ClusterPlan
	for _, s := range p.clusterPlans() {
		switch {
		case s.Lent:
		case s.role == idle || s.role == waiting:
			room -= s.Left
		case s.isFixed():
			s.Aim.Min = s.heldBounds().Min
			total, room = total-s.Aim.Min, room-max(s.leastMaximum(), s.Left)
		case s.role == leaving:
		default:
			hands = append(hands, s)
		}
	}
	total = max(0, min(total, room))
	least := p.leastMinima(r, hands, room)
	floors := p.spareable(r, now, hands, least)
	switch aim, sum := minimaAim(hands, least, total); {
	case sum == aim && r.minima:
		p.shiftMinima(hands, floors, aim)
	case sum == aim: // they stay
	case sum > aim && total >= sumCounts(floors): // a shift is in progress, or the sum must fall: clusters that need less give
		setMinima(hands, distributeShares(total, targetsOf(hands, func(i int, s *ClusterPlan) (lo, hi, current int64) {
			return floors[i], s.Confirmed.Min, s.Confirmed.Min
		}, false)))
	default:
		setMinima(hands, evenMinima(hands, least, total, room))
	}
}

func setMinima(hands []*ClusterPlan, minima []int64) {
	for i, s := range hands {
		s.Aim.Min = minima[i]
	}
}

// evenMinima makes the minima as even as the bounds allow. If that would leave too little room for
// the replicas that run, minima move to clusters that run more anyway.
func evenMinima(hands []*ClusterPlan, least []int64, total, room int64) []int64 {
	even := distributeShares(total, targetsOf(hands, func(i int, s *ClusterPlan) (lo, hi, current int64) {
		return least[i], max(least[i], s.highestMin()), s.Confirmed.Min
	}, false))
	idle := make([]int64, len(hands)) // minima beyond what runs
	for i, s := range hands {
		idle[i] = max(0, even[i]-s.runsWith(least[i]))
		room -= s.runsWith(least[i])
	}
	idle = distributeShares(max(0, room), targetsOf(hands, func(i int, _ *ClusterPlan) (lo, hi, current int64) { return 0, idle[i], 0 }, false))
	return distributeShares(total, targetsOf(hands, func(i int, s *ClusterPlan) (lo, hi, current int64) {
		lo = min(even[i], s.runsWith(least[i])+idle[i])
		return lo, max(lo, min(s.runsWith(least[i]), s.highestMin())), s.Confirmed.Min
	}, false))
}

// runsWith returns how many replicas the cluster runs whatever its minimum is.
func (s *ClusterPlan) runsWith(least int64) int64 { return max(least, min(s.desired(), s.max)) }

// leastMinima returns the lowest minimum of each cluster: its preference, or less if the maximum is
// lower, or 0 where more would turn the autoscaler off.
func (p *Plan) leastMinima(r rules, hands []*ClusterPlan, room int64) []int64 {
	return distributeShares(max(0, room), targetsOf(hands, func(_ int, s *ClusterPlan) (lo, hi, current int64) {
		if s.restsAtZero() {
			return 0, 0, 0
		}
		lo = r.lowestMinimum()
		return lo, max(lo, s.min), 0
	}, false))
}

// restsAtZero reports whether the cluster runs nothing, and a minimum above 0 would turn its
// autoscaler off, or the one that it gets.
func (s *ClusterPlan) restsAtZero() bool {
	if l := s.cluster.Local; l != nil && !l.New {
		return l.AtZero && !s.missing()
	}
	return s.cluster.Workload.AtZero
}

// highestMin returns the highest minimum that a cluster may get. A cluster that does not scale, or
// must stay at 0 until it scales, keeps its minimum.
func (s *ClusterPlan) highestMin() int64 {
	if s.frozen() || s.restsAtZero() {
		return min(s.Confirmed.Min, s.max)
	}
	return s.max
}

// minimaAim returns the sum that the minima should have, and the sum that they have now: -1 if one
// of them must change.
func minimaAim(hands []*ClusterPlan, least []int64, total int64) (aim, sum int64) {
	var lowest, highest int64
	for i, s := range hands {
		hi := max(least[i], s.highestMin())
		if s.role == joining || s.Confirmed.Min < least[i] || s.Confirmed.Min > hi {
			return 0, -1
		}
		sum, lowest, highest = sum+s.Confirmed.Min, lowest+least[i], highest+hi
	}
	return max(lowest, min(total, highest)), sum
}

// spareable returns the minima that would be enough: lower than now where a cluster would run fewer
// replicas, if minima may move.
func (p *Plan) spareable(r rules, now time.Time, hands []*ClusterPlan, least []int64) []int64 {
	floors := make([]int64, len(hands))
	for i, s := range hands {
		floors[i] = s.Confirmed.Min
		if !r.minima || s.frozen() || s.cluster.Local == nil || s.cluster.Local.Limit != v1alpha1.ByMin || s.Confirmed.Min <= least[i] {
			continue
		}
		if left := s.cooling(r, now); left > 0 {
			p.Again = requeue.Sooner(p.Again, left)
			continue
		}
		floors[i] = max(least[i], min(s.Confirmed.Min-1, s.cluster.Local.Demand))
	}
	return floors
}

// shiftMinima moves minima from clusters that would run fewer replicas to clusters that run more.
// First it gives what is wanted, from what all givers can spare; then it returns the rest to them.
func (p *Plan) shiftMinima(hands []*ClusterPlan, floors []int64, total int64) {
	wants := make([]int64, len(hands))
	for i, s := range hands {
		if wants[i] = s.Confirmed.Min; floors[i] == s.Confirmed.Min && !s.frozen() {
			wants[i] = max(s.Confirmed.Min, min(s.desired(), s.max))
		}
	}
	first := distributeShares(total, targetsOf(hands, func(i int, s *ClusterPlan) (lo, hi, current int64) {
		if wants[i] > s.Confirmed.Min {
			return floors[i], wants[i], s.Confirmed.Min
		}
		return floors[i], floors[i], s.Confirmed.Min
	}, false))
	setMinima(hands, distributeShares(total, targetsOf(hands, func(i int, s *ClusterPlan) (lo, hi, current int64) {
		return first[i], max(first[i], wants[i]), s.Confirmed.Min
	}, false)))
}

func sumCounts(numbers []int64) int64 {
	var sum int64
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// targetsOf returns the clusters as targets of the distribution. Tiers and weights count only for
// maxima.
func targetsOf(seats []*ClusterPlan, bounds func(i int, s *ClusterPlan) (lo, hi, current int64), preferred bool) []distribute.Target {
	targets := make([]distribute.Target, len(seats))
	for i, s := range seats {
		lo, hi, current := bounds(i, s)
		targets[i] = distribute.Target{Key: s.Name, Weight: 1, Min: lo, Max: hi, Current: current}
		if preferred {
			targets[i].Tier, targets[i].Weight = s.tier, s.weight
		}
	}
	return targets
}

// distributeShares calls the distribution rule with input that is always valid.
func distributeShares(total int64, targets []distribute.Target) []int64 {
	result, err := distribute.Distribute(total, targets, distribute.Options{})
	if err != nil {
		panic(err) // ends the sync of this object only
	}
	return result.Replicas
}
