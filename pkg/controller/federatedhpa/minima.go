// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
)

// divideMinima aims at minima that add up to what is wanted, and leaves those alone that already do.
func (p *Plan) divideMinima(r rules, now time.Time) {
	total, room := r.min, r.max
	var hands []*Seat
	for _, s := range p.seats() {
		switch {
		case s.Lent || s.role == idle || s.role == waiting:
			s.Aim.Min = 0
		case s.fixed():
			s.Aim.Min = s.held().Min
			total, room = total-s.Aim.Min, room-s.held().Max
		case s.role == leaving:
			s.Aim.Min = 0
		default:
			hands = append(hands, s)
		}
	}
	total = max(0, min(total, room))
	least := p.leastMinima(r, hands, room)
	if !keepsMinima(hands, least, total) {
		targets := targetsOf(hands, func(i int, s *Seat) (lo, hi, current int64) {
			return least[i], max(least[i], s.highestMin()), s.Confirmed.Min
		}, false)
		for i, n := range share(total, targets) {
			hands[i].Aim.Min = n
		}
		return
	}
	for _, s := range hands {
		s.Aim.Min = s.Confirmed.Min
	}
	if r.minima {
		p.shiftMinima(r, now, hands, least, total)
	}
}

// leastMinima are what each must have: its preference, less where that does not fit the maximum.
func (p *Plan) leastMinima(r rules, hands []*Seat, room int64) []int64 {
	return share(max(0, room), targetsOf(hands, func(_ int, s *Seat) (lo, hi, current int64) {
		lo = r.least()
		return lo, max(lo, s.min), 0
	}, false))
}

// highestMin is what its minimum may grow to. One that does not scale keeps what it has.
func (s *Seat) highestMin() int64 {
	if s.frozen() {
		return min(s.Confirmed.Min, s.max)
	}
	return s.max
}

// keepsMinima tells whether the minima are as good as any.
func keepsMinima(hands []*Seat, least []int64, total int64) bool {
	var sum, lowest, highest int64
	for i, s := range hands {
		hi := max(least[i], s.highestMin())
		if s.role == joining || s.Confirmed.Min < least[i] || s.Confirmed.Min > hi {
			return false
		}
		sum, lowest, highest = sum+s.Confirmed.Min, lowest+least[i], highest+hi
	}
	return sum == max(lowest, min(total, highest))
}

// shiftMinima moves minima from clusters that would run fewer to clusters that run more.
func (p *Plan) shiftMinima(r rules, now time.Time, hands []*Seat, least []int64, total int64) {
	floors, wants := make([]int64, len(hands)), make([]int64, len(hands))
	gives, takes := false, false
	for i, s := range hands {
		floors[i], wants[i] = s.Confirmed.Min, s.Confirmed.Min
		switch {
		case s.frozen() || s.cluster.Local == nil:
		case s.cluster.Local.Limit == v1alpha1.ByMin && s.Confirmed.Min > least[i]:
			if left := s.cooling(r, now); left > 0 {
				p.Again = sooner(p.Again, left)
				break
			}
			floors[i], gives = max(least[i], min(s.Confirmed.Min-1, s.cluster.Local.Demand)), true
		case s.desired() > s.Confirmed.Min:
			wants[i], takes = min(s.desired(), s.max), true
		}
	}
	if !gives || !takes {
		return
	}
	// First what is wanted, from what all givers can spare; then the rest goes back to them.
	first := share(total, targetsOf(hands, func(i int, s *Seat) (lo, hi, current int64) {
		if wants[i] > s.Confirmed.Min {
			return floors[i], wants[i], s.Confirmed.Min
		}
		return floors[i], floors[i], s.Confirmed.Min
	}, false))
	for i, n := range share(total, targetsOf(hands, func(i int, s *Seat) (lo, hi, current int64) {
		return first[i], max(first[i], wants[i]), s.Confirmed.Min
	}, false)) {
		hands[i].Aim.Min = n
	}
}

// targetsOf asks the kernel for seats. Tiers and weights count for maxima alone.
func targetsOf(seats []*Seat, bounds func(i int, s *Seat) (lo, hi, current int64), preferred bool) []distribute.Target {
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

// share asks the kernel. What is asked for here is never malformed.
func share(total int64, targets []distribute.Target) []int64 {
	result, err := distribute.Distribute(total, targets, distribute.Options{})
	if err != nil {
		panic(err) // ends the sync of this one object
	}
	return result.Replicas
}
