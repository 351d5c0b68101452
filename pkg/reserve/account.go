// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"time"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Lowered is what is known of reductions of spec.replicas that the reserve had to take: somebody wants fewer machines in all than
// workload and the reserve need.
type Lowered struct {
	// Times is how often that happened in a row, and until when replicas are the most that the reserve may reach.
	Times int
	Until time.Time
	// Replicas, Wish and Max are what they were then. Where somebody raises replicas, or changes one of the others, it is over.
	Replicas, Wish, Max int
}

// over reports whether a client has changed its mind since.
func (l Lowered) over(replicas int, v View) bool {
	return replicas > l.Replicas || v.Wish != l.Wish || v.Max != l.Max
}

// settle decides who takes a reduction of spec.replicas that the reserve has absorbed so far, and how many machines min keeps as
// workload although the reserve does not need them (laws 17 and 18).
func (r *round) settle() {
	a := &r.Applied
	r.plan.Lowered = r.Lowered
	switch {
	case r.Now.Sub(r.Lowered.Until) >= lastRetry:
		r.plan.Lowered = Lowered{}
	case r.Now.Before(r.Lowered.Until) && r.Lowered.over(r.Replicas+a.Counted, r.View):
		r.plan.Lowered.Until = r.Now
	}
	if r.counting = a.Counted+a.Absorbed > 0; r.counting {
		// Machines that serve and were named have left by now, so R goes where they went.
		gone := limit(r.Replicas-r.tally().serving, a.Absorbed)
		r.Replicas -= gone
		a.Counted += gone
		if a.Absorbed > gone {
			r.noteReduction()
		}
		a.Absorbed = 0
		r.fit()
		r.keep()
	}
	if r.plan.Lowered.Times > 0 && (r.Rollout || r.Now.Before(r.plan.Lowered.Until)) {
		r.reduced = r.Replicas+a.Counted < r.Max
		r.Max = min(r.Max, r.Replicas+a.Counted)
	}
	r.fit()
	r.plan.Replicas, r.plan.Applied = r.Replicas, *a
	r.shown = pool.VisibleReplicas(r.Replicas, *a)
}

// noteReduction remembers a reduction that the reserve takes. Replicas are not given back for a reserve machine that was named with it.
func (r *round) noteReduction() {
	l := &r.plan.Lowered
	wait := min(lastRetry, firstRetry<<min(l.Times, 6))
	*l = Lowered{Times: l.Times + 1, Until: r.Now.Add(wait), Replicas: r.Replicas + r.Applied.Counted, Wish: r.Wish, Max: r.Max}
	for _, m := range r.machines {
		if m.Named && m.Reserve && !m.Returned {
			r.plan.Returned = append(r.plan.Returned, m.Name)
		}
	}
}

// keep has reserve machines serve where replicas would fall below min without them.
func (r *round) keep() {
	a, stays := &r.Applied, 0
	if r.Accounting == pool.Inclusive {
		stays = r.Excess
	}
	n := limit(r.Min-r.Replicas-stays, a.Counted)
	r.Replicas, a.Counted, a.Excess = r.Replicas+n, a.Counted-n, a.Excess-n
}

// fit makes the excess what max leaves of the wish.
func (r *round) fit() { r.Excess = max(0, min(r.Wish, r.Max-r.Replicas)) }

// count has spec.replicas include reserve machines that have a Node (law 16), or none where the reserve is beyond it.
func (r *round) count() {
	a := &r.plan.Applied
	room := min(r.Max, a.Max) - r.plan.Replicas
	switch {
	case r.Accounting == pool.Inclusive:
		registered := len(r.pick(func(m Machine) bool { return m.Reserve && m.Registered }, byName))
		a.Counted = max(a.Counted, min(registered, a.Excess, room))
	case a.Counted <= room:
		a.Counted = 0 // above max the excess falls first
	}
}
