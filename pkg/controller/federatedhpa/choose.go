// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// choose gives each cluster its role.
func (p *Plan) choose(r rules, now time.Time) {
	for _, s := range p.seats() {
		if s.role = idle; s.has() {
			s.role = leaving
		}
	}
	candidates := p.candidates()
	wanted := p.wantedClusters(r, candidates)
	base := candidates[:min(wanted, p.roomFor(r))]
	for _, s := range base {
		s.entry.OnDemand, s.entry.QuietSince = false, nil
		s.take()
	}
	for _, s := range candidates[len(base):wanted] {
		if !s.has() {
			s.role = waiting
		}
	}
	p.keepExtras(r, now, base, candidates[len(base):])
	p.admit(r)
	if r.onDemand {
		p.joinOnDemand(r, candidates)
	}
}

func (s *Seat) take() {
	if s.role = joining; s.has() {
		s.role = used
	}
}

// candidates are the clusters that can be used: those that are, then those that can join; within each by tier and name.
func (p *Plan) candidates() []*Seat {
	var all []*Seat
	for _, s := range p.seats() {
		if !s.has() && p.Starting { // who has just appeared may come first by tier and name
			continue
		}
		if s.candidate() {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *Seat) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.tier, b.tier), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (s *Seat) candidate() bool {
	c := s.cluster
	if s.has() {
		// One that has vanished from the registry keeps its place as long as its share is held for it.
		return (c.Selected || !c.Registered) && !s.Lent
	}
	return c.Selected && c.Reachable && c.Absent && !c.Pausing && c.Foreign == Hold{} && c.Fault == Hold{}
}

func (s *Seat) rank() int {
	switch {
	case s.has() && !s.entry.OnDemand:
		return 0
	case s.has():
		return 1
	default:
		return 2
	}
}

// wantedClusters is how many clusters the policy asks for.
func (p *Plan) wantedClusters(r rules, candidates []*Seat) int {
	if r.policy == v1alpha1.AtLeastOne || r.policy == v1alpha1.AllowZero {
		return len(candidates)
	}
	return int(min(int64(len(candidates)), max(1, r.min)))
}

// roomFor is how many clusters can have a maximum of at least 1 each beside those that cannot be changed now.
func (p *Plan) roomFor(r rules) int {
	room, kept := r.max, int64(0)
	for _, s := range p.seats() {
		if s.fixed() && s.has() && !s.Lent {
			room -= s.held().Max
			if s.candidate() {
				kept++
			}
		}
	}
	return int(max(0, room) + kept)
}

// keepExtras decides which of the used clusters beyond the wanted number may stay for now.
func (p *Plan) keepExtras(r rules, now time.Time, base, others []*Seat) {
	for _, s := range others {
		if !s.has() || !r.onDemand {
			continue
		}
		s.entry.OnDemand = true
		if !dispensable(s, base, r) {
			s.entry.QuietSince = nil
			s.take()
			continue
		}
		if s.entry.QuietSince == nil {
			s.entry.QuietSince = &metav1.Time{Time: now.Truncate(time.Second)}
		}
		if left := r.quiet - now.Sub(s.entry.QuietSince.Time); left > 0 {
			p.Again = sooner(p.Again, left)
			s.take()
		}
	}
}

// dispensable reports whether an extra cluster runs no more than one replica, and the base could run that.
func dispensable(extra *Seat, base []*Seat, r rules) bool {
	if extra.desired() > 1 || extra.limited || extra.fixed() {
		return false
	}
	room, free := int64(0), r.max
	for _, s := range base {
		if s.role != used || s.limited || s.stuck || s.fixed() {
			return false
		}
		room += max(0, s.max-s.desired())
		free -= s.desired()
	}
	return len(base) > 0 && extra.desired() <= min(room, free)
}

// admit lets joining clusters in only as far as replicas can be had for them without taking any that run.
func (p *Plan) admit(r rules) {
	room := p.slack(r)
	for _, s := range p.byTier() {
		if s.role != joining {
			continue
		}
		if room < 1 {
			s.role = waiting
			continue
		}
		room--
	}
}

// slack is how much of the maximum no cluster needs for what it runs.
func (p *Plan) slack(r rules) int64 {
	room := r.max
	for _, s := range p.seats() {
		switch {
		case s.Lent || !s.has():
		case s.fixed():
			room -= s.held().Max
		case s.role == used:
			room -= max(1, s.min, min(s.desired(), s.usable(r)))
		}
	}
	return room
}

// joinOnDemand lets the next cluster in once all others are at their limits.
func (p *Plan) joinOnDemand(r rules, candidates []*Seat) {
	room := p.slack(r)
	if room < 1 {
		return
	}
	for _, s := range candidates {
		if s.role == joining || s.role == waiting || s.role == used && !s.saturated() {
			return
		}
	}
	for _, s := range candidates {
		if s.role == idle {
			s.entry.OnDemand, s.entry.QuietSince = true, nil
			s.take()
			return
		}
	}
}

// byTier are the seats in the order in which clusters come first.
func (p *Plan) byTier() []*Seat {
	all := p.seats()
	slices.SortStableFunc(all, func(a, b *Seat) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// sooner is the earlier of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(0, b)
	}
	return a
}
