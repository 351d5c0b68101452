// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"time"
)

// How long the reserve does not grow after a machine could not be created. The time doubles with each
// failure in a row.
const (
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// setTarget sets how many machines there are to be in reserve. Those that must stay take places there.
func (r *round) setTarget() {
	if r.view.AllLeaving {
		return
	}
	r.target = min(r.excess, r.attempt())
	protected := r.count(func(m Machine) bool { return m.Reserve && m.Protected })
	r.target = max(r.target, protected, r.least(), 0)
}

// least returns how many machines in reserve min requires: what spec.replicas includes of it does not fall
// below that, unless all machines leave.
func (r *round) least() int {
	if r.view.AllLeaving {
		return 0
	}
	return min(r.applied.Counted, r.view.Min-r.replicas)
}

// attempt returns how many machines in reserve to try to have: fewer than desired after some could not be
// created (law 10).
func (r *round) attempt() int {
	t, retry := r.countMachines(), &r.plan.Retry
	r.stuck = r.count(r.isStuck)
	waiting := r.view.Now.Before(retry.Until)
	switch left := t.reserve - r.stuck; {
	case r.stuck > 0 && waiting: // what is created in place of others fails, too
		retry.Left = min(retry.Left, left)
		return left
	case r.stuck > 0:
		failures := retry.Failures + 1
		*retry = Retry{Failures: failures, Until: r.view.Now.Add(delay(failures - 1)), Left: left}
		return left
	case retry.Failures == 0 || r.view.SettingsUnknown: // the excess is what there is
		return Unbounded
	case t.ready == t.reserve && t.reserve >= min(r.excess, cmp.Or(retry.Try, r.excess)):
		*retry = Retry{}
		return Unbounded
	case waiting:
		return max(t.reserve, retry.Left)
	}
	retry.Try = cmp.Or(retry.Try, max(t.reserve, retry.Left)+1)
	return max(t.reserve, retry.Try)
}

// delay returns how long to wait after this number of earlier failures.
func delay(failures int) time.Duration {
	return min(lastRetry, firstRetry<<min(failures, 6))
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
