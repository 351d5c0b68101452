// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"time"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Lowered records reductions of spec.replicas that the reserve had to take: a client wants fewer
// machines in total than workload and the reserve need.
type Lowered struct {
	// Times is how often that happened in a row. Until then, replicas are the most that the reserve
	// may reach.
	Times int
	Until time.Time
	// Lasting is a reduction to the max that bounds do not show. It has no end of its own.
	Lasting bool
	// Replicas, Wish and Max had these values then. The record ends when a client raises replicas
	// or changes one of the others.
	Replicas, Wish, Max int
	// Unread reports whether the settings could not be read then: Wish and Max are set once they can.
	Unread bool
}

// completed returns the record with the settings, once these can be read.
func (l Lowered) completed(v View) Lowered {
	if l.Unread && !v.SettingsUnknown {
		l.Wish, l.Max, l.Unread = v.Wish, v.Max, false
	}
	return l
}

// isOver reports whether a client has asked for something else since.
func (l Lowered) isOver(replicas int, v View) bool {
	return replicas > l.Replicas || !v.SettingsUnknown && (v.Wish != l.Wish || v.Max != l.Max)
}

// limits reports whether the reserve must not reach more replicas now.
func (l Lowered) limits(now time.Time) bool { return l.Times > 0 && (l.Lasting || now.Before(l.Until)) }

// settleReduction decides whether workload or the reserve takes a reduction of spec.replicas that
// the reserve has absorbed so far, and how many reserve machines min turns into workload (laws 9
// and 11).
func (r *round) settleReduction() {
	a, l := &r.applied, &r.plan.Lowered
	*l = r.view.Lowered.completed(r.view)
	switch {
	case !l.Lasting && !r.view.Rollout && r.view.Now.Sub(l.Until) >= lastRetry:
		*l = Lowered{}
	case l.limits(r.view.Now) && l.isOver(r.replicas+a.Counted, r.view):
		l.Until, l.Lasting = r.view.Now, false
	}
	if a.Included() {
		gone := clamp(r.countDeparted(), a.Absorbed)
		r.replicas -= gone
		a.Counted += gone
		if a.Absorbed > gone {
			r.noteReduction()
		}
		a.Absorbed = 0
		r.limitExcess()
		r.keepMin()
	}
	if l.Times > 0 && r.view.Rollout || l.limits(r.view.Now) {
		r.reduced = r.replicas+a.Counted < r.max
		r.max = min(r.max, r.replicas+a.Counted)
	}
	r.limitExcess()
}

// countDeparted returns how many serving machines have left and are not replaced, as those that were
// named: R falls by them. An unhealthy machine has not left. For one that a rollout has deleted, another
// one has been created, and a reserve machine will serve in its place.
func (r *round) countDeparted() int {
	t := r.countMachines()
	return min(r.replicas-t.serving-t.sick, pool.VisibleReplicas(r.replicas, r.applied)-t.live)
}

// noteReduction records a reduction that the reserve takes.
func (r *round) noteReduction() {
	before := r.plan.Lowered
	l := Lowered{Times: before.Times + 1, Until: r.view.Now.Add(delay(before.Times)), Lasting: r.view.Clamped, Replicas: r.replicas + r.applied.Counted, Wish: r.view.Wish, Max: r.max, Unread: r.view.SettingsUnknown}
	if before.limits(r.view.Now) { // so the settings are the same, or cannot be read
		l.Wish, l.Max, l.Unread = before.Wish, before.Max, before.Unread
	}
	r.plan.Lowered = l
}

// keepMin lets reserve machines serve if replicas would otherwise fall below min.
func (r *round) keepMin() {
	a, stays := &r.applied, 0
	if r.view.Accounting == pool.Inclusive {
		stays = r.excess
	}
	n := clamp(r.view.Min-r.replicas-stays, a.Counted)
	r.replicas, a.Counted, a.Excess = r.replicas+n, a.Counted-n, a.Excess-n
}

// limitExcess sets the excess to what max allows of the wish.
func (r *round) limitExcess() { r.excess = max(0, min(r.view.Wish, r.max-r.replicas)) }

// countRegistered makes spec.replicas include reserve machines that have a Node (law 9), or none
// if the reserve is beyond it.
func (r *round) countRegistered(a Applied) Applied {
	room := a.Max - r.replicas
	switch {
	case r.view.Accounting == pool.Inclusive:
		registered := r.count(func(m Machine) bool { return m.Reserve && m.Registered })
		a.Counted = max(a.Counted, min(registered, a.Excess, room-r.view.Waiting))
	case a.Counted <= room:
		a.Counted = 0 // above max the excess falls first
	}
	return a
}
