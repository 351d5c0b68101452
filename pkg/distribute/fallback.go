// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"fmt"
	"math"
)

// Health describes the ability of one target to run replicas.
type Health struct {
	// Blocked reports whether some of the target's replicas did not start in time.
	Blocked bool
	// Usable is the number of replicas that a blocked target is known to run.
	Usable int64
	// Failed is the number of replicas that did not start in time; 0 if that is not known. It limits
	// what others take over from a target of which more replicas run than failed.
	Failed int64
	// Probe is the number of replicas that a blocked target keeps beyond those that it is expected to
	// run, so that its recovery becomes visible. Below 0, it keeps all that it would have if it were
	// healthy.
	Probe int64
}

// Expected returns how many of a number of replicas a target runs, or will run: all of a healthy one.
// If at least as many replicas of a blocked target run as have failed, its other replicas, which are
// still in time or not requested yet, will run as well. Otherwise, nothing speaks for them.
func (h Health) Expected(replicas int64) int64 {
	if !h.Blocked {
		return replicas
	}
	lacking := max(0, replicas-h.Usable)
	if h.Failed > 0 && h.Failed <= h.Usable {
		lacking = min(lacking, h.Failed)
	}
	return replicas - lacking
}

// WithFallback distributes total as Distribute does, and gives what blocked targets are not expected
// to run to others: first to the healthy ones of the same tier, then to later tiers. What no target has room
// for is Overflow; it can occur together with a Deficit. MaxShareError is computed before the
// fallback of each tier, because fallback deviates from the shares on purpose.
//
// Laws, for a Probe below 0 unless stated otherwise:
//
//	no target gets less than without fallback;
//	a blocked target gets no more than if its whole tier were healthy;
//	a higher Usable raises neither any target nor Overflow, and neither does a lower Failed;
//	what is expected to run, and Overflow, add up to the total and the Deficit;
//	so the surplus is what blocked targets are not expected to run: of each, at most Failed if at
//	least as many run;
//	one more in total takes from no target, whatever the Probe;
//	Probe never changes what is expected to run, what others get or Overflow.
func WithFallback(total int64, targets []Target, health []Health, o Options) (Result, error) {
	if len(health) != len(targets) {
		return Result{}, fmt.Errorf("distribute with fallback: health of %d for %d targets: %w", len(health), len(targets), ErrMalformed)
	}
	for i, h := range health {
		if h.Blocked && h.Usable < 0 {
			return Result{}, fmt.Errorf("distribute with fallback to target %q: usable %d is below 0: %w", targets[i].Key, h.Usable, ErrMalformed)
		}
		if h.Blocked && h.Failed < 0 {
			return Result{}, fmt.Errorf("distribute with fallback to target %q: failed %d is below 0: %w", targets[i].Key, h.Failed, ErrMalformed)
		}
	}
	return placeTiers(total, targets, health, o)
}

// coverBlocked gives the healthy lanes of a tier what its blocked lanes cannot run. It returns what
// is left for later tiers, including what the tier had no room for before.
func coverBlocked(tier []*lane, health []Health, left int64) int64 {
	if health == nil {
		return left
	}
	var missing int64
	var healthy []*lane
	for _, l := range tier {
		h := health[l.target]
		if !h.Blocked {
			l.from = l.at
			healthy = append(healthy, l)
			continue
		}
		expected := h.Expected(l.at)
		l.lacking = l.at - expected
		missing += l.lacking
		l.at = h.blockedLimit(l, expected)
	}
	left, _ = fillTier(healthy, left+missing)
	return left
}

// blockedLimit returns how many replicas a blocked lane keeps.
func (h Health) blockedLimit(l *lane, expected int64) int64 {
	if h.Probe < 0 || h.Probe > math.MaxInt64-expected {
		return l.at
	}
	return min(l.at, max(l.from, expected+h.Probe))
}
