// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"fmt"
	"math"
)

// Health is what is known of one target's ability to run replicas.
type Health struct {
	// Blocked says that some of the target's replicas failed to start in time.
	Blocked bool
	// Usable is how many replicas a blocked target is believed to run: those observed without those not started.
	Usable int64
	// Probe is how many replicas beyond Usable a blocked target is left with, to show when it has recovered.
	// Below 0 it keeps all it would have in good health.
	Probe int64
}

// WithFallback spreads total as Distribute does, and gives what blocked targets cannot run to others: first to the
// healthy ones of the same tier, then to later tiers. What nobody can take is Overflow; it can come together with a
// Deficit. MaxShareError is taken before the fallback of each tier, since that is meant to leave the shares.
//
// Laws, with a Probe below 0 where nothing else is said:
//
//	no target gets less than without fallback;
//	a blocked target gets no more than if its whole tier were healthy;
//	a higher Usable raises neither any target nor Overflow;
//	what is usable, and Overflow, add up to total or more;
//	one more in total takes from nobody, whatever the Probe;
//	Probe never changes what is usable, what others get or Overflow.
func WithFallback(total int64, targets []Target, health []Health, o Options) (Result, error) {
	if len(health) != len(targets) {
		return Result{}, fmt.Errorf("distribute with fallback: health of %d for %d targets: %w", len(health), len(targets), ErrMalformed)
	}
	for i, h := range health {
		if h.Blocked && h.Usable < 0 {
			return Result{}, fmt.Errorf("distribute with fallback to target %q: usable %d is below 0: %w", targets[i].Key, h.Usable, ErrMalformed)
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
		missing += max(0, l.at-h.Usable)
		l.at = h.blockedLimit(l)
	}
	left, _ = fillTier(healthy, left+missing)
	return left
}

// blockedLimit returns how many replicas a blocked lane keeps.
func (h Health) blockedLimit(l *lane) int64 {
	if h.Probe < 0 || h.Probe > math.MaxInt64-h.Usable {
		return l.at
	}
	return min(l.at, max(l.from, h.Usable+h.Probe))
}
