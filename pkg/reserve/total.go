// SPDX-License-Identifier: Apache-2.0

package reserve

// setTotal sets how many machines there are to be, and how many may be created now (laws 1 and 8).
func (r *round) setTotal() {
	t, going := r.countMachines(), r.going()
	able := r.count(func(m Machine) bool { return !m.Unhealthy() && !m.kept && !going[m.Name] })
	beyond := t.live - len(going) - r.plan.Cut - r.replicas
	excess := max(beyond, t.reserve-len(going), r.least())
	switch {
	case r.view.Rollout: // of those that it leaves, so many will serve in place of machines that go
		stays := func(m Machine) bool { return !going[m.Name] && r.stays(m) }
		beyond = r.count(stays) - r.replicas
		if t.reserve-r.soon() <= r.target { // otherwise, machines that serve beyond R go after those of the reserve
			beyond = min(beyond, r.count(func(m Machine) bool { return m.Reserve && stays(m) }))
		}
		excess = max(r.target, beyond)
	case t.serving <= r.replicas:
		// Machines beyond R that are sick stay part of what is recorded, although less is desired: they may recover.
		excess = max(r.target, t.reserve-r.soon()-len(going), min(r.view.Applied.Excess, beyond))
	}
	r.plan.Total = r.replicas + excess
	r.plan.Room, r.plan.Serve = r.room(t), max(0, r.replicas-able)
}

// going returns the machines of the reserve that are to be deleted.
func (r *round) going() map[string]bool {
	all := map[string]bool{}
	for _, d := range r.plan.Going {
		if d.Why != Surplus {
			all[d.Name] = true
		}
	}
	return all
}

// room returns how many machines may be created. Together with those that are leaving, they stay within
// max. Workload waits only for machines of the reserve to leave: others may be sick, or take hours to
// drain.
func (r *round) room(t counts) int {
	if r.view.Rollout {
		return Unbounded // its surge is beyond max
	}
	ofReserve := 0
	for _, m := range r.machines {
		if m.Leaving() && m.Reserve {
			ofReserve++
		}
	}
	forWorkload := min(r.replicas-t.live, max(r.max, r.replicas)-t.live-ofReserve)
	return max(0, forWorkload, r.max-t.live-t.leaving)
}

// record sets what is to be recorded. A machine that is to be deleted is part of the excess until it is
// seen leaving: if something prevents its deletion, no other machine may seem to be too many.
func (r *round) record() {
	excess := r.plan.Total - r.replicas + len(r.going())
	a := Applied{Excess: excess, Max: r.max, Counted: min(r.applied.Counted, excess)}
	r.plan.Replicas, r.plan.Applied = r.replicas, r.countRegistered(a)
}
