// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"
	"time"
)

// How long the applied excess does not grow after a reserve machine could not be created. The time
// doubles with each failure in a row.
const (
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// recheck is how often a plan that waits for Nodes is made again. They may belong to other
// MachineDeployments.
const recheck = time.Minute

// setTarget decides the applied excess to work towards. The victims and the gate follow from it.
func (r *round) setTarget() {
	t := r.countMachines()
	r.target = r.excess
	if r.view.Rollout {
		r.target = r.applied.Excess
	}
	if r.plan.Lowered.Times > 0 && r.present > r.visible {
		// MCM still has to delete what workload gave up. Otherwise it would delete victims for
		// that, and serving machines for the victims.
		r.target = max(r.target, r.applied.Excess)
	}
	r.retryFailed(t)
	r.removeSurplus(t)
	// Machines that must not be removed take places in the reserve, but are no reason to grow (law
	// 7).
	kept := len(r.selectMachines(func(m Machine) bool { return m.Reserve && m.protected() }, byName))
	// What spec.replicas includes of the reserve does not fall below min either.
	r.target = max(r.target, min(kept, r.applied.Excess), min(r.applied.Counted, r.view.Min-r.replicas), 0)
}

// retryFailed gives up machines that cannot be created, waits, and then tries again with one
// machine (law 10).
func (r *round) retryFailed(t counts) {
	retry := &r.plan.Retry
	r.stuck = len(r.selectMachines(r.isStuck, byName))
	waiting := r.view.Now.Before(retry.Until)
	// While MCM has deletions to do, the stuck machines may be those that it is about to delete.
	fresh := !waiting || !r.view.Rollout && r.present <= r.visible
	switch {
	case r.stuck > 0 && fresh:
		r.target = min(r.target, r.applied.Excess-r.stuck)
	case retry.Failures == 0 || r.view.SettingsUnknown: // the excess is what there is
	case t.ready == t.reserve && t.reserve >= min(r.excess, cmp.Or(retry.Try, r.excess)):
		*retry = Retry{}
	case waiting:
		r.target = min(r.target, r.applied.Excess)
	default:
		retry.Try = cmp.Or(retry.Try, r.applied.Excess+1)
		r.target = min(r.target, retry.Try)
	}
}

// recordFailure remembers that the applied excess has been reduced because of stuck machines.
func (r *round) recordFailure() {
	failures := r.view.Retry.Failures + 1
	wait := lastRetry
	if doublings := failures - 1; doublings < 6 {
		wait = min(wait, firstRetry<<doublings)
	}
	r.plan.Retry = Retry{Failures: failures, Until: r.view.Now.Add(wait)}
}

// isStuck reports whether a reserve machine cannot be created, or does not become ready in time.
// While Nodes cannot be seen, nothing is known of the readiness of machines that have been created.
func (r *round) isStuck(m Machine) bool {
	if r.view.NodesUnknown && m.HasProviderID {
		return false
	}
	late := r.view.BootPatience > 0 && r.view.Now.Sub(m.Created) >= r.view.BootPatience
	return m.Reserve && m.starting() && (m.Failing || late)
}

// removeSurplus asks for the removal of machines beyond R when patience with them has ended (law
// 5). Patience does not run while a machine is leaving, machine-controller-manager has deletions to
// do, or too many Nodes are not ready.
func (r *round) removeSurplus(t counts) {
	over := t.serving - r.replicas
	if over <= 0 || t.leaving > 0 || r.view.Rollout || r.view.NodesUnknown || r.view.Unhealthy || t.present > r.visible {
		return
	}
	r.plan.SurplusSince = r.view.SurplusSince
	if r.view.SurplusSince.IsZero() {
		r.plan.SurplusSince = r.view.Now
	}
	if r.impatient() {
		r.surplus = min(over, len(r.emptiest()))
		r.target = min(r.target, t.live-r.replicas-r.surplus)
	}
}

// impatient reports whether patience with a surplus has ended.
func (r *round) impatient() bool {
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

// candidates returns the serving machines that may be removed, whatever runs on them, in the order
// to drain them.
func (r *round) candidates() []int {
	return r.selectMachines(Machine.drainable, func(a, b Machine) int {
		return cmp.Or(
			deletedAnyway(a, b),
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

// drainable reports whether a surplus machine may be removed, whatever runs on it.
func (m Machine) drainable() bool {
	return m.serves() && m.HasProviderID && !m.protected()
}

// deletedAnyway orders machines first that are deleted first whatever the plan does, so that they
// are counted.
func deletedAnyway(a, b Machine) int {
	return cmp.Compare(min(a.Priority, PriorityServing), min(b.Priority, PriorityServing))
}

func byName(a, b Machine) int { return cmp.Compare(a.Name, b.Name) }
