// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// chooseVictims names the victims: the reserve machines that are too many when the applied excess
// has reached its target (law 6), and the surplus. During a rollout, these are only stuck machines
// and leftovers, or the whole reserve once no excess is applied: none is created then, and the
// remaining reserve must not delay machines that serve.
func (r *round) chooseVictims() {
	t := r.countMachines()
	r.surplusServes = !r.view.Rollout && t.serving > r.replicas
	n := clamp(t.reserve-r.target, t.live-pool.VisibleReplicas(r.replicas, Applied{Excess: r.target, Max: r.max}))
	switch {
	case r.view.Rollout && r.applied.Excess == 0:
		n = t.reserve
	case r.view.Rollout:
		n = clamp(r.applied.Excess-r.target, r.stuck)
	}
	spare := r.selectMachines(func(m Machine) bool { return m.Reserve && !m.protected() && (!r.view.NodesUnknown || r.isStuck(m)) }, r.victimOrder)
	n = clamp(n, len(spare))
	for _, i := range slices.Concat(spare[:n], r.leftovers(spare[n:], t.reserve-n)) {
		why := Shrunk
		if r.isStuck(r.machines[i]) {
			why = Unmakeable
		}
		r.addVictim(i, why)
	}
	if r.surplus > 0 {
		for _, i := range r.emptiest()[:r.surplus] {
			r.addVictim(i, Surplus)
		}
	}
	slices.SortFunc(r.plan.Victims, func(a, b Victim) int { return cmp.Compare(a.Name, b.Name) })
}

// leftovers returns those of the spare machines that a reduction before the rollout should have
// deleted. No MachineSet asks for more machines than are shown, so that one that has more was
// reduced, and not by the rollout. As long as the machines are there, machine-controller-manager may
// have no room to create the first new one. Of the reserve, this many remain besides.
func (r *round) leftovers(spare []int, remain int) (leftovers []int) {
	if !r.view.Rollout {
		return nil
	}
	live := map[string]int{}
	for _, m := range r.machines {
		if !m.Leaving() {
			live[m.Set]++
		}
	}
	for _, i := range spare {
		set := r.machines[i].Set
		if live[set] > r.visible && remain > r.target {
			leftovers = append(leftovers, i)
			live[set]--
			remain--
		}
	}
	return leftovers
}

func (r *round) victimOrder(a, b Machine) int {
	return cmp.Or(
		compareFalseFirst(a.protected(), b.protected()),
		compareFalseFirst(!r.isStuck(a), !r.isStuck(b)),
		deletedAnyway(a, b),
		compareFalseFirst(a.Busy(), b.Busy()),
		compareFalseFirst(a.Ready(), b.Ready()),
		compareFalseFirst(!a.Cordoned, !b.Cordoned),
		newestFirst(a, b),
	)
}

func (r *round) addVictim(i int, why Why) {
	r.victim[i] = true
	r.plan.Victims = append(r.plan.Victims, Victim{Name: r.machines[i].Name, Why: why})
}

// setApplied moves the applied excess, with its max, as far towards the target as is safe now.
func (r *round) setApplied() {
	if r.view.AllLeaving {
		r.plan.Applied = Applied{Max: r.max}
		return
	}
	next := Applied{Excess: r.applied.Excess, Max: r.max, Counted: r.applied.Counted}
	if r.view.Rollout {
		// A lower max would be one more reduction for the same machines that cannot be created.
		next.Max = max(next.Max, r.applied.Max)
	}
	switch {
	case r.target < next.Excess:
		next.Excess = r.lowestExcess()
	case r.target > next.Excess:
		next.Excess = r.highestExcess()
	}
	if next.Excess == 0 && r.applied.Excess == 0 {
		// Without an excess, nothing is recorded.
		return
	}
	// If the whole change does not pass, the excess may still fall under the old max.
	next.Counted = min(next.Counted, next.Excess)
	for _, a := range []Applied{next, {Excess: next.Excess, Max: r.applied.Max, Counted: next.Counted}} {
		if r.passesGate(pool.VisibleReplicas(r.replicas, a)) {
			r.plan.Applied = a
			break
		}
	}
	if r.stuck > 0 && r.plan.Applied.Excess < r.applied.Excess {
		r.recordFailure()
	}
}

// passesGate reports whether machine-controller-manager may be shown n replicas now: the gate (law
// 6), and the limit of growth (law 8).
func (r *round) passesGate(n int) bool {
	switch {
	case n == r.visible:
		return true
	case n < r.visible:
		return !r.view.Behind && n >= r.minVisible() && (!r.view.Rollout || r.stuck > 0)
	}
	return n <= r.maxVisible()
}

// minVisible returns the smallest number of replicas for which only machines are deleted that may
// be.
func (r *round) minVisible() int {
	if r.view.Rollout {
		// The whole reduction may fall on any of the sets, and machines beyond the replicas belong
		// to the rollout.
		return r.visible - r.expendable()
	}
	// Machines that MachineSets ask for and do not have yet may be created at any moment, and are
	// then too many.
	return max(r.countMachines().present, r.view.MaxSetReplicas) - r.expendable()
}

// lowestExcess returns the smallest applied excess, not below the target, that passes the gate.
func (r *round) lowestExcess() int {
	return min(max(r.target, r.minVisible()-r.replicas), r.applied.Excess)
}

// maxVisible returns the largest number of replicas that may be shown now. It always includes the
// machines in reserve, since none is created for them, and machine-controller-manager would delete
// serving machines instead. Beyond that, all machines, also those that are leaving, must stay
// within max and below the number at which machine-controller-manager freezes the
// MachineDeployment.
func (r *round) maxVisible() int {
	t := r.countMachines()
	switch {
	case r.view.Rollout:
		return r.visible
	case t.serving > r.replicas:
		return r.replicas + t.reserve
	case r.view.FreezeMargin > 0 && t.leaving >= r.view.FreezeMargin:
		return t.live
	}
	return max(t.live, r.max-t.leaving)
}

// highestExcess returns the largest applied excess, not above the target, that may be shown now.
func (r *round) highestExcess() int {
	return max(r.applied.Excess, min(r.target, r.maxVisible()-r.replicas))
}

// setPriorities gives each machine its priority (law 11). It takes a victim back only when
// machine-controller-manager has no reason to delete it, or would be refused.
func (r *round) setPriorities() {
	if r.view.NodesUnknown {
		return
	}
	// Until a larger excess is written, the old one counts.
	shown := min(r.visible, pool.VisibleReplicas(r.replicas, r.plan.Applied))
	for i, m := range r.machines {
		if m.Leaving() || !m.HasProviderID || !m.hasRulePriority() {
			continue
		}
		want := PriorityServing
		switch {
		case r.victim[i]:
			want = PriorityVictim
		case m.Priority == PriorityVictim && r.mayBeDeleted(m, shown) && !r.isNeeded(m):
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

// isNeeded reports whether a machine serves, and no more do than workload needs. Its deletion is
// refused; with the priority of a victim, machine-controller-manager would ask for it again and
// again, and the victims would stay.
func (r *round) isNeeded(m Machine) bool {
	return !m.Reserve && !m.Unhealthy() && !r.view.Rollout && !r.surplusServes
}

// deletionOrder orders machines as machine-controller-manager deletes them, as far as nothing can
// change that before it does. It returns 0 if the order is open: machine-controller-manager also
// compares phases, but a booting machine may run a moment later; and then ages, in seconds.
func (r *round) deletionOrder(i, j int) int {
	a, b := r.machines[i], r.machines[j]
	return cmp.Or(
		compareFalseFirst(a.Preserved, b.Preserved),
		cmp.Compare(r.worstPriority(i), r.worstPriority(j)),
		compareFalseFirst(!a.Named, !b.Named),
		cmp.Compare(r.phaseRank(i), r.phaseRank(j)),
	)
}

// worstPriority returns the priority by which machine i is deleted in the worst case: the lens' store
// may show the stored one of a machine that is to stay at any moment.
func (r *round) worstPriority(i int) int {
	m := r.machines[i]
	if r.victim[i] || r.mayDelete(i) {
		return m.SeenPriority
	}
	return min(m.Priority, m.SeenPriority)
}

// phaseRank ranks the phases that no machine leaves within seconds: Failed is deleted before
// CrashLoopBackOff, and both before all others. The phases of an in-place update are deleted before
// all of them, because machine-controller-manager does not rank these. In the worst case, only a
// machine that is to stay still has such a phase.
func (r *round) phaseRank(i int) int {
	switch m := r.machines[i]; {
	case pool.UpdatedInPlace(m.Phase) && !r.mayDelete(i):
		return 0
	case m.Phase == mcm.MachineFailed:
		return 1
	case m.neverMade():
		return 2
	}
	return 3
}

// neverMade reports whether a machine could not be created, so that it has no VM.
func (m Machine) neverMade() bool {
	return m.Phase == mcm.MachineCrashLoopBackOff && m.Failing && !m.HasProviderID
}

// expendable returns how many machines machine-controller-manager could delete from each of its
// sets, in its own order and in the worst case, before it deletes one that the plan wants to keep.
func (r *round) expendable() int {
	sets := map[string][]int{}
	for i, m := range r.machines {
		if m.Phase != mcm.MachineTerminating {
			sets[m.Set] = append(sets[m.Set], i)
		}
	}
	least := len(r.machines)
	for _, set := range sets {
		slices.SortFunc(set, func(i, j int) int {
			return cmp.Or(r.deletionOrder(i, j), compareFalseFirst(r.mayDelete(i), r.mayDelete(j)))
		})
		if n := slices.IndexFunc(set, func(i int) bool { return !r.mayDelete(i) }); n >= 0 {
			least = min(least, n)
		}
	}
	return least
}

// mayDelete reports whether machine i may be deleted, and the lens' store shows that.
func (r *round) mayDelete(i int) bool {
	m := r.machines[i]
	switch {
	case m.Leaving():
		return true
	case m.neverMade() && m.Reserve && !m.Busy():
		// It cannot get a priority, and does not need one. If it is created a moment later, another
		// machine may be deleted in its place, which is spared only if no more than R serve. One that
		// serves may also get pods by then.
		return !r.surplusServes
	case r.view.NodesUnknown, m.Open && !r.isStuck(m):
		return false
	}
	if r.view.Rollout && m.Reserve && m.SeenPriority == PriorityReserve {
		// The last machines of an old set: it has no serving machine left, which would be deleted
		// first.
		return true
	}
	return (m.Reserve || r.victim[i]) && m.SeenPriority <= PriorityVictim
}

func compareFalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
