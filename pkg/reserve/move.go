// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// ServesOnCreation decides whether a machine that is about to be created serves (law 1): it does if
// otherwise fewer than R machines could serve; else it is in reserve. inFlight is the number of
// creations that the view does not show yet, including those whose outcome is unknown.
//
// A healthy reserve machine counts as one that could serve, because it is released before the new
// machine has booted. The new machine is then in reserve from the start, and does not need to be
// moved there later. One that is dedicated does not, unless it is claimed.
func ServesOnCreation(v View, inFlight int) bool {
	able := inFlight
	owners := Dedicate(v.Machines, v.Dedicated)
	for i, m := range v.Machines {
		victim := m.Reserve && m.Priority <= PriorityVictim
		if !m.Leaving() && !m.Unhealthy() && !victim && (owners[i] == "" || m.Claimed) {
			able++
		}
	}
	return able < v.Replicas
}

// restoreReplicas raises R for reserve machines that a client named for deletion while it lowered R
// (law 12). The rest of the round uses the new R. Machines that boot do not count as serving here:
// a swap may have put them there. Those whose release has begun do.
func (r *round) restoreReplicas() {
	if r.counting {
		return // the reserve has taken it
	}
	opened := r.selectMachines(func(m Machine) bool { return m.Reserve && m.Open && m.Ready() }, byName)
	room := r.countMachines().running + len(opened) - r.replicas
	gone := clamp(room, r.view.NamedGone)
	r.replicas, room = r.replicas+gone, room-gone
	for _, m := range r.machines {
		if room > 0 && m.Named && m.Reserve && !m.Returned {
			r.plan.Returned = append(r.plan.Returned, m.Name)
			r.replicas++
			room--
		}
	}
	r.plan.Replicas = r.replicas
	r.limitExcess()
	r.visible = pool.VisibleReplicas(r.replicas, r.applied)
}

// releaseMachines takes machines out of the reserve until R machines serve: ready ones until R run,
// then also booting ones until R serve (laws 2 and 3).
func (r *round) releaseMachines() {
	if r.view.NodesUnknown {
		return
	}
	t := r.countMachines()
	ready := r.selectMachines(func(m Machine) bool { return r.releasable(m) && !m.kept }, r.releaseOrder)
	for _, i := range ready[:clamp(r.replicas-t.running, len(ready))] {
		why := Released
		switch {
		case t.serving < r.replicas:
		case r.machines[i].Cordoned:
			continue // the one that boots will accept pods
		default:
			why = Swapped
		}
		t.serving++
		r.changeMark(i, false, why)
	}
	booting := r.selectMachines(func(m Machine) bool {
		return m.Reserve && m.booting() && !m.kept && m.HasProviderID && !r.mayBeDeleted(m, r.visible)
	}, r.releaseOrder)
	for _, i := range booting[:clamp(r.replicas-t.serving, len(booting))] {
		r.changeMark(i, false, Released)
	}
}

// releasable reports whether a machine can leave the reserve and serve at once.
func (r *round) releasable(m Machine) bool {
	return m.Reserve && m.Ready() && m.HasProviderID && !r.mayBeDeleted(m, r.visible)
}

// releaseOrder prefers machines that pods may be bound to already, then those that are claimed, then
// those that are not cordoned, then those that are not about to be deleted, then the current revision,
// then those without a taint of their own, then those that are empty, then those that are not stuck,
// then the oldest, which is the order of r.machines. A new Node may have taints for some seconds after
// it is ready. In a rollout, pods that went to an old machine instead would move twice.
func (r *round) releaseOrder(a, b Machine) int {
	return cmp.Or(
		compareFalseFirst(!a.Open, !b.Open),
		compareFalseFirst(!a.Claimed, !b.Claimed),
		compareFalseFirst(a.Cordoned, b.Cordoned),
		compareFalseFirst(a.Priority <= PriorityVictim, b.Priority <= PriorityVictim),
		compareFalseFirst(a.Set != r.view.CurrentSet, b.Set != r.view.CurrentSet),
		compareFalseFirst(a.Tainted, b.Tainted),
		compareFalseFirst(a.Busy(), b.Busy()),
		compareFalseFirst(r.isStuck(a), r.isStuck(b)),
	)
}

// retireMachines puts empty machines into the reserve while more than R serve (law 4), booting ones
// first. It waits while machine-controller-manager has deletions to do, since these may reduce the
// machines to R, and while the view may show machines that are gone. A machine that may have entered
// already is not one of those that serve, and is tried again before others.
func (r *round) retireMachines() {
	t := r.countMachines()
	if !r.direct && t.present > r.visible || r.view.NodesUnknown || r.view.Behind {
		return
	}
	// If nothing is to be deleted, A has room for all of them.
	for _, i := range r.selectMachines(func(m Machine) bool { return m.Doubtful && m.serves() }, byName) {
		t.removeServing(r.machines[i])
	}
	for _, i := range r.retirable() {
		m, left := r.machines[i], t
		if !m.Doubtful {
			left.removeServing(m)
		}
		if left.serving < r.replicas || m.Ready() && left.running < r.replicas || r.direct && t.reserve >= r.target {
			return
		}
		t = left
		t.reserve++
		why := Swapped
		if m.Ready() {
			why = Retired
		}
		r.changeMark(i, true, why)
	}
}

// retirable returns the machines that may enter the reserve: those that may have entered it first,
// then those that are not ready, then old revisions, then the newest.
func (r *round) retirable() []int {
	return r.selectMachines(
		func(m Machine) bool {
			return m.serves() && !m.Busy() && m.HasProviderID && m.Priority >= PriorityVictim
		},
		func(a, b Machine) int {
			return cmp.Or(
				compareFalseFirst(!a.Doubtful, !b.Doubtful),
				compareFalseFirst(a.Ready(), b.Ready()),
				compareFalseFirst(a.Set == r.view.CurrentSet, b.Set == r.view.CurrentSet),
				newestFirst(a, b),
			)
		})
}

func (r *round) changeMark(i int, reserve bool, why Why) {
	r.machines[i].Reserve, r.machines[i].Open = reserve, reserve
	r.plan.Moves = append(r.plan.Moves, Move{Name: r.machines[i].Name, Reserve: reserve, Why: why})
}

func newestFirst(a, b Machine) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Name, a.Name))
}

// clamp returns n, but at least 0 and at most most.
func clamp(n, most int) int { return max(0, min(n, most)) }
