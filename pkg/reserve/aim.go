// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"time"
)

// How long the applied excess does not grow after a reserve machine could not be made. It doubles with every failure
// in a row.
const (
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// recheck is how often a plan that waits for Nodes to become ready is made again: they may belong to other MachineDeployments.
const recheck = time.Minute

// aim settles where the applied excess is headed. The victims and the gate follow from that.
func (r *round) aim() {
	t := r.tally()
	r.target = r.Excess
	if r.Rollout {
		r.target = r.Applied.Excess
	}
	if r.plan.Lowered.Times > 0 && r.present > r.shown {
		// MCM has yet to delete what workload gave up. It would take victims for that, and machines that serve for the victims.
		r.target = max(r.target, r.Applied.Excess)
	}
	r.retry(t)
	r.overstay(t)
	// Those that cannot be let go hold their places, but they are no reason to grow (law 7).
	kept := len(r.pick(func(m Machine) bool { return m.Reserve && m.kept() }, byName))
	// Nor does it go below min what spec.replicas includes.
	r.target = max(r.target, min(kept, r.Applied.Excess), min(r.Applied.Counted, r.Min-r.Replicas), 0)
}

// retry leaves out what cannot be made, waits, and then tries with one machine (law 10).
func (r *round) retry(t tally) {
	retry := &r.plan.Retry
	r.stuck = len(r.pick(r.isStuck, byName))
	waiting := r.Now.Before(retry.Until)
	// While MCM has deletions to do, what is stuck may be what is to be deleted.
	fresh := !waiting || !r.Rollout && r.present <= r.shown
	switch {
	case r.stuck > 0 && fresh:
		r.target = min(r.target, r.Applied.Excess-r.stuck)
	case retry.Failures == 0:
	case t.ready == t.reserve && t.reserve >= min(r.Excess, cmp.Or(retry.Try, r.Excess)):
		*retry = Retry{}
	case waiting:
		r.target = min(r.target, r.Applied.Excess)
	default:
		retry.Try = cmp.Or(retry.Try, r.Applied.Excess+1)
		r.target = min(r.target, retry.Try)
	}
}

// failed remembers that the applied excess has fallen because of what is stuck.
func (r *round) failed() {
	failures := r.Retry.Failures + 1
	wait := lastRetry
	if doublings := failures - 1; doublings < 6 {
		wait = min(wait, firstRetry<<doublings)
	}
	r.plan.Retry = Retry{Failures: failures, Until: r.Now.Add(wait)}
}

// isStuck says that a reserve machine cannot be made, or does not become ready in time. Whether one that has been made is ready is
// not known while Nodes cannot be seen.
func (r *round) isStuck(m Machine) bool {
	if r.Blind && m.Made {
		return false
	}
	late := r.BootPatience > 0 && r.Now.Sub(m.Born) >= r.BootPatience
	return m.Reserve && m.booting() && (m.Failing || late)
}

// overstay waits until patience with machines beyond R has ended, and then asks for their removal (law 5). It does not
// count while anything leaves, machine-controller-manager has deletions to do, or too many Nodes are not ready.
func (r *round) overstay(t tally) {
	over := t.serving - r.Replicas
	if over <= 0 || t.leaving > 0 || r.Rollout || r.Blind || r.Unhealthy || t.present > r.shown {
		return
	}
	r.plan.SurplusSince = r.SurplusSince
	if r.SurplusSince.IsZero() {
		r.plan.SurplusSince = r.Now
	}
	if r.Now.Sub(r.plan.SurplusSince) >= r.Patience {
		r.surplus = min(over, len(r.emptiest()))
		r.target = min(r.target, t.live-r.Replicas-r.surplus)
	}
}

// emptiest lists the serving machines that may be drained, in the order to drain them.
func (r *round) emptiest() []int {
	return r.pick(
		func(m Machine) bool { return m.drainable() && !m.Pinned },
		func(a, b Machine) int {
			return cmp.Or(
				firstToGo(a, b),
				cmp.Compare(a.Pods, b.Pods),
				compareFalseFirst(a.Ready(), b.Ready()),
				newestFirst(a, b),
			)
		})
}

// pinned reports whether only pods that must not be evicted keep machines from being drained.
func (r *round) pinned() bool {
	return len(r.emptiest()) == 0 && len(r.pick(Machine.drainable, byName)) > 0
}

// drainable reports whether a machine that is surplus may go, whatever it holds.
func (m Machine) drainable() bool { return !m.Reserve && !m.Sick() && m.Made && !m.kept() }

// firstToGo puts first what goes first whatever the plan says, so that it is counted.
func firstToGo(a, b Machine) int {
	return cmp.Compare(min(a.Priority, PriorityServing), min(b.Priority, PriorityServing))
}

func byName(a, b Machine) int { return cmp.Compare(a.Name, b.Name) }
