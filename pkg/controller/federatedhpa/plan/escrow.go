// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// Operation is what an order does.
type Operation string

const (
	// Create is the creation of an object that the cluster does not have.
	Create Operation = "create"
	// Change is a change of the object that the cluster has.
	Change Operation = "change"
	// Remove is the removal of the object from the cluster.
	Remove Operation = "remove"
	// Scale is a change of the replicas of a workload, and of nothing else.
	Scale Operation = "scale"
)

// Order is one write to a cluster's autoscaler. It takes effect only on the version that it was
// decided on.
type Order struct {
	Cluster   string
	Operation Operation
	Bounds
	Was          Bounds
	Version, UID string
	Unclaimed    bool
	// Epoch is part of the write, so that every write changes something, even if the bounds stay.
	Epoch int64
}

// orderBounds turns aims into orders. Reductions are sent at once. A raise is sent only as far as the
// maximums leave room, each counted at the highest value that it may have; a minimum is lowered only
// as far as the minimums allow, each counted at the lowest value that it may have.
func (p *Plan) orderBounds(r rules, now time.Time) {
	raises, budget := p.raises(r)
	spare := p.spareMinima(r)
	// If raises wait only for room, a maximum is lowered at once, together with its minimum.
	pressing := budget < 0 || budget == 0 && len(raises) > 0
	more := p.moreToCome()
	for _, s := range p.clusterPlans() {
		if s.isFixed() {
			continue
		}
		to := Bounds{Max: s.Aim.Max}
		switch {
		case budget < 0 && s.Aim.Max > s.Confirmed.Max: // it counts already, but as too much
			to.Max = min(s.share(), max(1, s.Confirmed.Max, min(s.runsLeft(), s.Aim.Max)))
		case s.Aim.Max > s.share():
			if to.Max = s.share() + raises[s.Name]; more && to.Max < s.Aim.Max {
				to.Max = s.share() // one raise instead of several
				p.Again = requeue.Sooner(p.Again, awhile)
			}
		}
		if to.Min = min(s.Aim.Min, to.Max); to.Min < s.Confirmed.Min {
			given := min(s.Confirmed.Min-to.Min, spare)
			to.Min, spare = s.Confirmed.Min-given, spare-given
		}
		if to.Max > 0 && !pressing {
			to.Max = max(to.Max, to.Min)
		}
		to.Min = min(to.Min, to.Max)
		p.orderFor(s, to, now)
	}
}

// awhile is how long a raise waits for reductions under way, so that it is sent in one step. A
// reduction that takes longer delays no other cluster.
const awhile = time.Second

// moreToCome reports whether reductions are being sent, or may be confirmed at any moment.
func (p *Plan) moreToCome() bool {
	return slices.ContainsFunc(p.clusterPlans(), func(s *ClusterPlan) bool { return s.Aim.Max < s.Confirmed.Max })
}

// raises distributes the budget: what the counted maxima leave of maxReplicas. A negative budget
// means that they exceed it already. Nothing is raised while a cluster has yet to be read for the
// first time: after the hub's etcd was restored, the ledger is old and may count too little.
func (p *Plan) raises(r rules) (granted map[string]int64, budget int64) {
	budget, counted := r.max, int64(0)
	var rising []*ClusterPlan
	for _, s := range p.clusterPlans() {
		if s.Lent {
			continue
		}
		budget -= s.share()
		if !s.isFixed() && s.Aim.Max > s.share() {
			rising, counted = append(rising, s), counted+s.share()
		}
	}
	room := max(0, budget)
	if p.Starting {
		room = 0
	}
	to := distributeShares(counted+room, targetsOf(rising, func(_ int, s *ClusterPlan) (lo, hi, current int64) { return s.share(), s.Aim.Max, s.share() }, true))
	granted = map[string]int64{}
	for i, s := range rising {
		granted[s.Name] = to[i] - s.share()
	}
	return granted, budget
}

// spareMinima returns by how much the minima may be lowered without falling below the desired
// number, or the sum of the goals.
func (p *Plan) spareMinima(r rules) int64 {
	var counted, aimed int64
	for _, s := range p.clusterPlans() {
		if !s.Lent {
			counted, aimed = counted+s.Counted.Min, aimed+s.Aim.Min
		}
	}
	return max(0, counted-min(r.min, aimed))
}

// orderFor adds an order that moves a cluster to its bounds, if there is anything to send.
func (p *Plan) orderFor(s *ClusterPlan, to Bounds, now time.Time) {
	l := s.cluster.Local
	doubt := s.entry.Outstanding != nil
	o := Order{Cluster: s.Name, Bounds: to, Was: s.Confirmed}
	switch {
	case l == nil && to.Max == 0 && !doubt:
		return
	case l == nil && to.Max == 0:
		// Only an existing autoscaler prevents a creation that was already sent from taking effect.
		// This one is removed again. Each cluster allows a minimum of 1, and not each one of 0. What runs
		// there continues to run.
		o.Operation, o.Bounds = Create, Bounds{1, max(1, s.Left)}
	case l == nil:
		o.Operation = Create
	case to.Max == 0 && s.revives(now) <= 0:
		o.Operation, o.Version, o.UID = Remove, l.Version, l.UID
		s.entry.Epoch = max(1, s.entry.Epoch) // something was sent, also where it was adopted as it is
		p.Orders = append(p.Orders, o)
		return
	case to.Max == 0:
		p.Again = requeue.Sooner(p.Again, s.revives(now))
		if o.Bounds = (Bounds{min(1, s.Confirmed.Min), max(1, min(s.desired(), s.Confirmed.Max))}); o.Bounds == s.Confirmed {
			return
		}
		o.Operation, o.Version, o.UID, o.Unclaimed = Change, l.Version, l.UID, l.Unclaimed
	case to == s.Confirmed && !l.Drifted && !doubt:
		return
	default:
		o.Operation, o.Version, o.UID, o.Unclaimed = Change, l.Version, l.UID, l.Unclaimed
	}
	if doubt || o.Max > s.Confirmed.Max || o.Min < s.Confirmed.Min {
		s.promise(o)
	}
	if o.Operation == Create && s.entry.Outstanding.Repeated {
		s.entry.RemovableAfter = &metav1.Time{Time: now.Add(CreationLife).Truncate(time.Second)}
	}
	if o.Bounds != s.Confirmed {
		s.entry.MovedAt = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	o.Epoch = s.entry.Epoch
	p.Orders = append(p.Orders, o)
}

// CreationLife is how long a creation may be in flight: the limits of the client and of an API
// server, and a margin. No precondition can stop it once the object is removed.
const CreationLife = 3 * time.Minute

// revives returns for how long a creation in flight could bring a removed autoscaler back.
func (s *ClusterPlan) revives(now time.Time) time.Duration {
	if s.entry.RemovableAfter == nil {
		return 0
	}
	return s.entry.RemovableAfter.Sub(now)
}

// promise enters an order into the ledger before it is sent.
func (s *ClusterPlan) promise(o Order) {
	before := s.entry.Outstanding
	s.entry.Epoch++
	s.entry.Outstanding = &v1alpha1.Outstanding{MinReplicas: clampInt32(o.Min), MaxReplicas: clampInt32(o.Max), Base: o.Version}
	if before != nil {
		s.entry.Outstanding.Repeated = true
		s.entry.Outstanding.MinReplicas = min(before.MinReplicas, s.entry.Outstanding.MinReplicas)
		s.entry.Outstanding.MaxReplicas = max(before.MaxReplicas, s.entry.Outstanding.MaxReplicas)
	}
	s.Counted = Bounds{min(s.Counted.Min, o.Min), max(s.Counted.Max, o.Max)}
}

// clampInt32 limits a count to the range of the API.
func clampInt32(n int64) int32 { return int32(max(0, min(n, math.MaxInt32))) }
