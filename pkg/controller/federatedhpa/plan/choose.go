// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// choose gives each cluster its role.
func (p *Plan) choose(r rules, now time.Time) {
	for _, s := range p.clusterPlans() {
		if s.role = idle; s.hasAutoscaler() {
			s.role = leaving
		}
	}
	candidates := p.candidates()
	wanted := p.wantedClusters(r, candidates)
	base := candidates[:min(wanted, p.roomFor(r))]
	for _, s := range base {
		s.entry.OnDemand, s.entry.QuietSince = false, nil
		s.selectRole()
	}
	for _, s := range candidates[len(base):wanted] {
		if !s.hasAutoscaler() {
			s.role = waiting
		}
	}
	p.keepExtras(r, now, base, candidates[len(base):])
	p.admitJoining(r)
	if r.onDemand {
		p.joinOnDemand(r, candidates)
	}
}

func (s *ClusterPlan) selectRole() {
	if s.role = joining; s.hasAutoscaler() {
		s.role = used
	}
}

// candidates returns the usable clusters: first those in use, then those that can join, each sorted
// by tier and name. Of those of a tier that can join, the first have a workload that the hub created:
// another client has removed the autoscaler.
func (p *Plan) candidates() []*ClusterPlan {
	var all []*ClusterPlan
	for _, s := range p.clusterPlans() {
		if !s.hasAutoscaler() && p.Starting { // a new cluster may come first by tier and name
			continue
		}
		if s.candidate() {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *ClusterPlan) int {
		return cmp.Or(cmp.Compare(a.joiningRank(), b.joiningRank()), cmp.Compare(a.tier, b.tier), cmp.Compare(a.newcomer(), b.newcomer()))
	})
	return all
}

func (s *ClusterPlan) candidate() bool {
	c := s.cluster
	if s.hasAutoscaler() {
		// A used cluster that is no longer registered keeps its place as long as its share is held.
		return (c.Selected || !c.Registered) && !s.Lent
	}
	return c.Selected && c.Reachable && c.Absent && !c.Pausing && c.Foreign == Hold{} && c.Fault == Hold{}
}

func (s *ClusterPlan) joiningRank() int {
	switch {
	case s.hasAutoscaler() && !s.entry.OnDemand:
		return 0
	case s.hasAutoscaler():
		return 1
	default:
		return 2
	}
}

// newcomer is 1 for a cluster that can join and has neither a workload that the hub created nor replicas that
// count, otherwise 0.
func (s *ClusterPlan) newcomer() int {
	w := s.cluster.Workload
	if s.share() > 0 || w.Exists && w.Ours && !w.Terminating {
		return 0
	}
	return 1
}

// wantedClusters returns how many clusters the policy asks for.
func (p *Plan) wantedClusters(r rules, candidates []*ClusterPlan) int {
	if r.policy == v1alpha1.AtLeastOne || r.policy == v1alpha1.AllowZero {
		return len(candidates)
	}
	return int(min(int64(len(candidates)), max(1, r.min)))
}

// roomFor returns how many clusters can have a maximum of at least 1 each, besides those that
// cannot be changed now. None leaves because another one takes a moment to confirm a lower maximum.
func (p *Plan) roomFor(r rules) int {
	room, kept := r.max, int64(0)
	for _, s := range p.clusterPlans() {
		if s.isFixed() && !s.Lent {
			room -= s.leastMaximum()
			if s.candidate() {
				kept++
			}
		}
	}
	return int(max(0, room) + kept)
}

// keepExtras decides which of the used clusters beyond the wanted number may stay for now.
func (p *Plan) keepExtras(r rules, now time.Time, base, others []*ClusterPlan) {
	for _, s := range others {
		if !s.hasAutoscaler() || !r.onDemand {
			continue
		}
		s.entry.OnDemand = true
		if !dispensable(s, base, r) {
			s.entry.QuietSince = nil
			s.selectRole()
			continue
		}
		if s.entry.QuietSince == nil {
			s.entry.QuietSince = &metav1.Time{Time: now.Truncate(time.Second)}
		}
		if left := r.quiet - now.Sub(s.entry.QuietSince.Time); left > 0 {
			p.Again = requeue.Sooner(p.Again, left)
			s.selectRole()
		}
	}
}

// dispensable reports whether an extra cluster runs at most one replica, and whether the other
// clusters could run it.
func dispensable(extra *ClusterPlan, base []*ClusterPlan, r rules) bool {
	if extra.desired() > 1 || extra.limited || extra.isFixed() {
		return false
	}
	room, free := int64(0), r.max
	for _, s := range base {
		if s.limited || s.stuck || s.isFixed() {
			return false
		}
		room += max(0, s.max-s.desired())
		free -= s.desired()
	}
	return len(base) > 0 && extra.desired() <= min(room, free)
}

// admitJoining admits joining clusters only as far as there are replicas for them without taking
// any that run. What a cluster has left there counts already.
func (p *Plan) admitJoining(r rules) {
	room := p.spareReplicas(r)
	for _, s := range p.byTier() {
		if s.role != joining || s.Left > 0 {
			continue
		}
		if room--; room < 0 {
			s.role = waiting
		}
	}
}

// spareReplicas returns how much of the maximum no cluster needs for what it runs.
func (p *Plan) spareReplicas(r rules) int64 {
	room := r.max
	for _, s := range p.clusterPlans() {
		switch {
		case s.Lent:
		case s.isFixed():
			room -= max(s.heldBounds().Max, s.Left)
		case s.role == used:
			room -= max(1, s.min, min(s.desired(), s.usable(r)))
		default:
			room -= s.Left
		}
	}
	return room
}

// joinOnDemand admits the next cluster once all others are at their limits.
func (p *Plan) joinOnDemand(r rules, candidates []*ClusterPlan) {
	room := p.spareReplicas(r)
	if room < 1 {
		return
	}
	for _, s := range candidates {
		if s.role == joining || s.role == used && !s.saturated() {
			return
		}
	}
	for _, s := range candidates {
		if s.role == idle {
			s.entry.OnDemand, s.entry.QuietSince = true, nil
			s.selectRole()
			return
		}
	}
}

// byTier returns the clusters in the order of their tiers, those of one tier by name.
func (p *Plan) byTier() []*ClusterPlan {
	all := p.clusterPlans()
	slices.SortStableFunc(all, func(a, b *ClusterPlan) int { return cmp.Compare(a.tier, b.tier) })
	return all
}
