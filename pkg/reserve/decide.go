// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"
)

// Decide makes a plan for a controller that creates and deletes the machines itself. It needs no gate
// and no priorities: a machine is deleted because this plan names it. Of the view, it does not read
// what machine-controller-manager has seen.
func Decide(v View) Plan {
	r := newRound(v)
	r.direct = true
	if r.asked = v.Replicas + v.Applied.Excess; v.Applied.Excess <= 0 { // there is no record
		r.asked = max(v.Replicas+v.Applied.Excess, v.SetReplicas)
	}
	r.applied.Excess = max(r.countMachines().reserve, r.applied.Counted+r.applied.Absorbed)
	r.settleReduction()
	r.restoreReplicas()
	r.releaseMachines()
	r.aim()
	r.retireMachines()
	r.chooseGoing()
	r.total()
	r.countRegistered()
	r.resetPriorities()
	r.setOwners()
	r.summarize()
	return r.plan
}

// aim sets how many machines there are to be in reserve.
func (r *round) aim() {
	t := r.countMachines()
	r.target = r.excess
	retry := &r.plan.Retry
	waiting := r.view.Now.Before(retry.Until)
	r.stuck = len(r.selectMachines(r.isStuck, byName))
	switch {
	case r.stuck > 0:
		r.target = min(r.target, t.reserve-r.stuck)
		if !waiting {
			r.recordFailure()
		}
	case retry.Failures == 0 || r.view.SettingsUnknown: // the excess is what there is
	case t.ready == t.reserve && t.reserve >= min(r.excess, cmp.Or(retry.Try, r.excess)):
		*retry = Retry{}
	case waiting:
		r.target = min(r.target, t.reserve)
	default:
		retry.Try = cmp.Or(retry.Try, t.reserve+1)
		r.target = min(r.target, max(retry.Try, t.reserve))
	}
	kept := len(r.selectMachines(func(m Machine) bool { return m.Reserve && m.protected() }, byName))
	r.target = max(r.target, kept, min(r.applied.Counted, r.view.Min-r.replicas), 0)
	if r.view.AllLeaving {
		r.target = 0
	}
}

// chooseGoing names the machines that may be deleted now: reserve machines that are too many, if their
// Nodes are closed and no pod runs there, and machines beyond R that are drained after patience.
func (r *round) chooseGoing() {
	t := r.countMachines()
	r.surplusServes = !r.view.Rollout && t.serving > r.replicas
	over := t.reserve - r.soon() - r.target
	for _, i := range r.selectMachines(r.isClosed, r.victimOrder) {
		m, why := r.machines[i], Shrunk
		if r.isStuck(m) {
			why = Unmakeable
		}
		if r.plan.Closed = append(r.plan.Closed, m.Name); over > 0 && r.mayGo(m) {
			r.plan.Going = append(r.plan.Going, Victim{m.Name, why})
			over--
		}
	}
	if !r.view.Rollout {
		r.plan.Cut = clamp(t.live-r.asked, t.serving+t.sick-r.replicas)
	}
	over = t.serving - r.replicas - r.plan.Cut
	if over <= 0 || t.leaving > 0 || r.view.Rollout || r.view.NodesUnknown || r.view.Unhealthy {
		return
	}
	if r.plan.SurplusSince = r.view.SurplusSince; r.view.SurplusSince.IsZero() {
		r.plan.SurplusSince = r.view.Now
	}
	if r.impatient() {
		r.drain(over, t.running-r.replicas)
	}
}

// drain names machines of a surplus, of which only so many may be ready: others may be beyond R that never
// become ready, and run no workload.
func (r *round) drain(over, ready int) {
	for _, i := range r.emptiest() {
		if over <= 0 {
			return
		}
		if r.machines[i].Ready() {
			if ready <= 0 {
				continue
			}
			ready--
		}
		over--
		r.plan.Going = append(r.plan.Going, Victim{r.machines[i].Name, Surplus})
	}
}

// soon returns how many machines in reserve will serve as soon as they can, because fewer than R do: they
// are not too many, and none is created in their place.
func (r *round) soon() int {
	able := r.selectMachines(func(m Machine) bool { return m.Reserve && !m.Unhealthy() && !m.kept && !r.isStuck(m) }, byName)
	return clamp(r.replicas-r.countMachines().serving, len(able))
}

// isClosed reports whether a machine in reserve may be deleted now where that is needed. A rollout does
// not wait for pods that tolerate the reserve, nor for what keeps machines otherwise.
func (r *round) isClosed(m Machine) bool {
	return m.Reserve && (r.mayGo(m) || r.view.Rollout && !r.view.NodesUnknown && !m.Open)
}

// mayGo reports whether a machine in reserve may be deleted because it is too many: no pod runs there,
// and none can come. One that cannot be created has no Node.
func (r *round) mayGo(m Machine) bool {
	switch {
	case m.protected():
		return false
	case r.view.AllLeaving:
		return true
	case r.view.NodesUnknown:
		return r.isStuck(m)
	}
	return !m.Busy() && (!m.Open || r.isStuck(m))
}

// total sets how many machines there are to be, and how many may be created now. All machines, also
// those that are leaving, stay within max, unless workload needs more.
func (r *round) total() {
	t := r.countMachines()
	shrunk := map[string]bool{}
	for _, going := range r.plan.Going {
		if going.Why != Surplus {
			shrunk[going.Name] = true
		}
	}
	able := 0
	for _, m := range r.machines {
		if !m.Leaving() && !m.Unhealthy() && !m.kept && !shrunk[m.Name] {
			able++
		}
	}
	r.plan.Serve = max(0, r.replicas-able)
	stays := t.live - len(shrunk) - r.plan.Cut
	excess := max(stays-r.replicas, t.reserve-len(shrunk))
	switch {
	case r.view.Rollout:
		excess = max(r.target, len(r.selectMachines(func(m Machine) bool { return m.Reserve && !shrunk[m.Name] && r.stays(m) }, byName)))
	case t.serving <= r.replicas:
		excess = max(r.target, t.reserve-r.soon()-len(shrunk))
	}
	r.plan.Total = r.replicas + excess
	r.plan.Room = r.room(t)
	r.plan.Applied = Applied{Excess: excess, Max: r.max, Counted: min(r.plan.Applied.Counted, excess)}
	r.visible, r.present = r.plan.Total, t.live
}

// stays reports whether a rollout leaves a machine: others go in any case, and nothing comes in their
// place because of them.
func (r *round) stays(m Machine) bool { return r.view.CurrentSet == "" || m.Set == r.view.CurrentSet }

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

// resetPriorities removes what an earlier version, which needed priorities, has left.
func (r *round) resetPriorities() {
	for _, m := range r.machines {
		if !m.Leaving() && m.HasProviderID && m.hasRulePriority() && m.Priority != PriorityServing {
			r.plan.Priorities = append(r.plan.Priorities, Priority{Name: m.Name, Priority: PriorityServing})
		}
	}
	slices.SortFunc(r.plan.Priorities, func(a, b Priority) int { return cmp.Compare(a.Name, b.Name) })
}
