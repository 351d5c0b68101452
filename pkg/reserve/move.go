// SPDX-License-Identifier: Apache-2.0

package reserve

import "cmp"

// restoreReplicas raises R for reserve machines that a client named for deletion while it lowered R
// (law 3). If replicas include reserve machines, these take that. The rest of the round uses the new R.
// Machines that boot do not count as serving here: a swap may have put them there. Those whose release has
// begun do.
func (r *round) restoreReplicas() {
	if r.view.Applied.Included() {
		return
	}
	opened := r.count(func(m Machine) bool { return m.Reserve && m.Open && m.Ready() })
	r.restored = clamp(r.countMachines().running+opened-r.replicas, r.view.NamedSpares)
	r.replicas += r.restored
	r.limitExcess()
}

// releaseMachines takes machines out of the reserve until R machines serve: ready ones until R run,
// then also booting ones until R serve (law 2).
func (r *round) releaseMachines() {
	if r.view.NodesUnknown {
		return
	}
	t := r.countMachines()
	ready := r.selectMachines(func(m Machine) bool { return m.releasable() && !m.kept }, r.releaseOrder)
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
		return m.Reserve && m.booting() && !m.kept && m.HasProviderID
	}, r.releaseOrder)
	for _, i := range booting[:clamp(r.replicas-t.serving, len(booting))] {
		r.changeMark(i, false, Released)
	}
}

// releasable reports whether a machine can leave the reserve and serve at once.
func (m Machine) releasable() bool { return m.Reserve && m.Ready() && m.HasProviderID }

// releaseOrder prefers machines that pods may be bound to already, then those that are claimed, then
// those that are not cordoned, then those that no client wants to be deleted first, then the current
// revision, then those without a taint of their own, then those that are empty, then those that are not
// stuck, then those that are prepared, then the oldest, which is the order of r.machines. A new Node may have taints for some seconds
// after it is ready. In a rollout, pods that went to an old machine instead would move twice.
func (r *round) releaseOrder(a, b Machine) int {
	return cmp.Or(
		compareFalseFirst(!a.Open, !b.Open),
		compareFalseFirst(!a.Claimed, !b.Claimed),
		compareFalseFirst(a.Cordoned, b.Cordoned),
		compareFalseFirst(a.First, b.First),
		compareFalseFirst(!r.stays(a), !r.stays(b)),
		compareFalseFirst(a.Tainted, b.Tainted),
		compareFalseFirst(a.Busy(), b.Busy()),
		compareFalseFirst(r.isStuck(a), r.isStuck(b)),
		compareFalseFirst(a.Unprepared, b.Unprepared),
	)
}

// stays reports whether a rollout leaves a machine: others go in any case, and nothing comes in their
// place because of them.
func (r *round) stays(m Machine) bool { return r.view.CurrentSet == "" || m.Set == r.view.CurrentSet }

// retireMachines puts empty machines into the reserve while more than R serve, and as far as it has yet to
// reach its target (law 4), booting ones first.
func (r *round) retireMachines() {
	if r.view.NodesUnknown {
		return
	}
	t := r.countMachines()
	for _, i := range r.retirable() {
		m, left := r.machines[i], t
		left.removeServing(m)
		if left.serving < r.replicas || m.Ready() && left.running < r.replicas || t.reserve >= r.target {
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

// retirable returns the machines that may enter the reserve: first those that are not ready, then old
// revisions, then the newest.
func (r *round) retirable() []int {
	return r.selectMachines(
		func(m Machine) bool { return m.serves() && !m.Busy() && m.HasProviderID && !m.First },
		func(a, b Machine) int {
			return cmp.Or(
				compareFalseFirst(a.Ready(), b.Ready()),
				compareFalseFirst(r.stays(a), r.stays(b)),
				newestFirst(a, b),
			)
		})
}

// changeMark moves a machine. One that enters the reserve stays open until that has been written.
func (r *round) changeMark(i int, reserve bool, why Why) {
	r.machines[i].Reserve, r.machines[i].Open = reserve, reserve
	r.plan.Moves = append(r.plan.Moves, Move{Name: r.machines[i].Name, Reserve: reserve, Why: why})
}
