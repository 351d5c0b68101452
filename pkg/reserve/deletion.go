// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"
	"time"
)

// shrink names the machines in reserve that are too many, if they may be deleted now (law 6).
func (r *round) shrink() {
	over := r.countMachines().reserve - r.soon() - r.target
	for _, i := range r.selectMachines(r.isClosed, r.shrinkOrder) {
		m, why := r.machines[i], Shrunk
		if r.isStuck(m) {
			why = Unmakeable
		}
		if r.plan.Closed = append(r.plan.Closed, m.Name); over > 0 && r.mayGo(m) {
			r.plan.Going = append(r.plan.Going, Deletion{m.Name, why})
			over--
		}
	}
}

// shrinkOrder is the order in which machines in reserve are deleted. A rollout deletes those last that
// must stay otherwise.
func (r *round) shrinkOrder(a, b Machine) int {
	return cmp.Or(
		compareFalseFirst(a.Protected, b.Protected),
		compareFalseFirst(!r.isStuck(a), !r.isStuck(b)),
		compareFalseFirst(!a.First, !b.First),
		compareFalseFirst(a.Busy(), b.Busy()),
		compareFalseFirst(a.Ready(), b.Ready()),
		compareFalseFirst(!a.Cordoned, !b.Cordoned),
		newestFirst(a, b),
	)
}

// soon returns how many machines in reserve will serve as soon as they can, because fewer than R do: they
// are not too many, and none is created in their place.
func (r *round) soon() int {
	able := r.count(func(m Machine) bool { return m.Reserve && !m.Unhealthy() && !m.kept && !r.isStuck(m) })
	return clamp(r.replicas-r.countMachines().serving, able)
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
	case m.Protected:
		return false
	case r.view.AllLeaving:
		return true
	case r.view.NodesUnknown:
		return r.isStuck(m)
	}
	return !m.Busy() && (!m.Open || r.isStuck(m))
}

// cut sets how many machines that are not in reserve are too many, because R has fallen. Others beyond R,
// such as those that have recovered, are not: the excess that is recorded includes them. When all machines leave,
// those are too many as well.
func (r *round) cut() {
	t, asked := r.countMachines(), r.asked
	if r.view.Rollout {
		return
	}
	if r.view.AllLeaving {
		asked = r.replicas
	}
	r.plan.Cut = clamp(t.live-asked, t.serving+t.sick-r.replicas)
}

// drain names machines to drain when patience with those that serve beyond R has ended (law 5). It does
// not run while a machine is leaving or too many Nodes are not ready.
func (r *round) drain() {
	t := r.countMachines()
	over := t.serving - r.replicas - r.plan.Cut
	if over <= 0 || t.leaving > 0 || r.view.Rollout || r.view.NodesUnknown || r.view.Unhealthy {
		return
	}
	if r.plan.SurplusSince = r.view.SurplusSince; r.view.SurplusSince.IsZero() {
		r.plan.SurplusSince = r.view.Now
	}
	if r.isImpatient() {
		r.drainMachines(over, t.running-r.replicas)
	}
}

// drainMachines names machines, of which only so many may be ready: others may be beyond R that never
// become ready, and run no workload.
func (r *round) drainMachines(over, ready int) {
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
		r.plan.Going = append(r.plan.Going, Deletion{r.machines[i].Name, Surplus})
	}
}

// isImpatient reports whether patience with a surplus has ended.
func (r *round) isImpatient() bool {
	return !r.plan.SurplusSince.IsZero() && r.view.Now.Sub(r.plan.SurplusSince) >= r.view.Patience
}

// emptiest returns the serving machines that may be drained together, in the order to drain them.
func (r *round) emptiest() []int {
	left := make([]int, len(r.view.Budgets))
	for i, b := range r.view.Budgets {
		left[i] = b.Allowed
	}
	return slices.DeleteFunc(r.candidates(), func(i int) bool { return r.machines[i].Pinned != "" || !r.spend(left, r.machines[i].Name) })
}

// spend takes the pods of a machine from what is left of budgets; false if that is not enough.
func (r *round) spend(left []int, machine string) bool {
	for i, b := range r.view.Budgets {
		if b.Pods[machine] > max(0, left[i]) {
			return false
		}
	}
	for i, b := range r.view.Budgets {
		left[i] -= b.Pods[machine]
	}
	return true
}

// candidates returns the serving machines that may be drained, whatever runs on them, in the order to
// drain them.
func (r *round) candidates() []int {
	return r.selectMachines(func(m Machine) bool { return m.serves() && m.HasProviderID && !m.Protected }, func(a, b Machine) int {
		return cmp.Or(
			compareFalseFirst(!a.First, !b.First),
			cmp.Compare(a.Pods, b.Pods),
			compareFalseFirst(a.Ready(), b.Ready()),
			newestFirst(a, b),
		)
	})
}

// pinned returns why no machine can be drained, if only pods prevent that: the reason of the one that
// would be the first.
func (r *round) pinned() string {
	if len(r.emptiest()) > 0 {
		return ""
	}
	for _, i := range r.candidates() {
		if m := r.machines[i]; m.Pinned != "" {
			return m.Pinned + ", on machine " + m.Name
		}
	}
	return ""
}

// recheck is how often a plan that waits for Nodes is made again. They may belong to other
// MachineDeployments.
const recheck = time.Minute
