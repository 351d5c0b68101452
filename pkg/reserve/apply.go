// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// choose names the victims: as many reserve machines as will be too many once the applied excess is where it is
// headed (law 6), and the surplus. During a rollout only what is stuck goes, or all once no excess is applied: none is born then, and
// what is left of the reserve must not be in the way of the machines that serve.
func (r *round) choose() {
	t := r.tally()
	n := limit(t.reserve-r.target, t.live-pool.VisibleReplicas(r.Replicas, Applied{Excess: r.target, Max: r.Max}))
	switch {
	case r.Rollout && r.Applied.Excess == 0:
		n = t.reserve
	case r.Rollout:
		n = limit(r.Applied.Excess-r.target, r.stuck)
	}
	spare := r.pick(func(m Machine) bool { return m.Reserve && !m.kept() && (!r.Blind || r.isStuck(m)) }, r.victimOrder)
	for _, i := range spare[:limit(n, len(spare))] {
		why := Shrunk
		if r.isStuck(r.machines[i]) {
			why = Unmakeable
		}
		r.condemn(i, why)
	}
	for _, i := range r.emptiest()[:r.surplus] {
		r.condemn(i, Surplus)
	}
	slices.SortFunc(r.plan.Victims, func(a, b Victim) int { return cmp.Compare(a.Name, b.Name) })
}

func (r *round) victimOrder(a, b Machine) int {
	return cmp.Or(
		compareFalseFirst(!r.isStuck(a), !r.isStuck(b)),
		firstToGo(a, b),
		compareFalseFirst(a.Busy(), b.Busy()),
		compareFalseFirst(a.Ready(), b.Ready()),
		newestFirst(a, b),
	)
}

func (r *round) condemn(i int, why Why) {
	r.victim[i] = true
	r.plan.Victims = append(r.plan.Victims, Victim{Name: r.machines[i].Name, Why: why})
}

// apply moves the applied excess as far towards the target as it may go now, with the max it is computed for.
func (r *round) apply() {
	if r.Ending {
		r.plan.Applied = Applied{Max: r.Max}
		return
	}
	next := Applied{Excess: r.Applied.Excess, Max: r.Max, Counted: r.Applied.Counted}
	switch {
	case r.target < next.Excess:
		next.Excess = r.lowered()
	case r.target > next.Excess:
		next.Excess = r.raised()
	}
	if next.Excess == 0 && r.Applied.Excess == 0 {
		// Nothing is recorded where there is no excess.
		return
	}
	// Where the whole change may not be made, perhaps the excess may fall under the old max.
	next.Counted = min(next.Counted, next.Excess)
	for _, a := range []Applied{next, {Excess: next.Excess, Max: r.Applied.Max, Counted: next.Counted}} {
		if a == r.Applied {
			return
		}
		if r.mayShow(pool.VisibleReplicas(r.Replicas, a)) {
			r.plan.Applied = a
			break
		}
	}
	if r.stuck > 0 && r.plan.Applied.Excess < r.Applied.Excess {
		r.failed()
	}
}

// mayShow is the gate (law 6) and the brake on growth (law 8).
func (r *round) mayShow(n int) bool {
	switch {
	case n == r.shown:
		return true
	case n < r.shown:
		return !r.Behind && n >= r.floor() && (!r.Rollout || r.stuck > 0)
	}
	return n <= r.ceiling()
}

// floor is the least number of replicas at which only machines go that may.
func (r *round) floor() int {
	if r.Rollout {
		// Each set may be asked for all of it, and machines beyond the replicas are the rollout's business.
		return r.shown - r.expendable()
	}
	// What MachineSets ask for and do not have yet may be created at any moment, and is then too many.
	return max(r.tally().present, r.Asked) - r.expendable()
}

// lowered is the least applied excess, not below the target, that the gate lets through.
func (r *round) lowered() int {
	return min(max(r.target, r.floor()-r.Replicas), r.Applied.Excess)
}

// ceiling is the largest number of replicas that may be asked for now. What is in reserve already may always be,
// since machine-controller-manager would take serving machines for it; nothing is created for that. Beyond it all machines,
// those that leave included, stay within max and below the number at which machine-controller-manager freezes.
func (r *round) ceiling() int {
	t := r.tally()
	switch {
	case r.Rollout:
		return r.shown
	case t.serving > r.Replicas:
		return r.Replicas + t.reserve
	case r.FreezeMargin > 0 && t.leaving >= r.FreezeMargin:
		return t.live
	}
	return max(t.live, r.Max-t.leaving)
}

// raised is the largest applied excess, not above the target, that may be asked for now.
func (r *round) raised() int {
	return max(r.Applied.Excess, min(r.target, r.ceiling()-r.Replicas))
}

// rank gives every machine its priority (law 11). A victim is taken back only when nobody is about to delete it.
func (r *round) rank() {
	if r.Blind {
		return
	}
	// Until a larger excess is written the old one counts.
	shown := min(r.shown, pool.VisibleReplicas(r.Replicas, r.plan.Applied))
	for i, m := range r.machines {
		if m.Leaving() || !m.Made || !m.ours() {
			continue
		}
		want := PriorityServing
		switch {
		case r.victim[i]:
			want = PriorityVictim
		case r.doomed(m, shown) && m.Priority == PriorityVictim:
			continue
		case m.Reserve && m.Ready():
			want = PriorityReserve
		}
		if want != m.Priority {
			r.plan.Priorities = append(r.plan.Priorities, Priority{Name: m.Name, Priority: want})
		}
	}
	slices.SortFunc(r.plan.Priorities, func(a, b Priority) int { return cmp.Compare(a.Name, b.Name) })
}
