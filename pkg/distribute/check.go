// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is wrapped by every error of this package: the input contradicts itself, and a retry
// does not help.
var ErrMalformed = errors.New("malformed input")

// checkTargets validates the targets and returns the sum of their minimums.
func checkTargets(total int64, targets []Target) (int64, error) {
	if total < 0 {
		return 0, fmt.Errorf("distribute a total of %d: below 0: %w", total, ErrMalformed)
	}
	var minima int64
	for _, t := range targets {
		if err := t.validate(); err != nil {
			return 0, fmt.Errorf("distribute to target %q: %w", t.Key, err)
		}
		if t.Min > math.MaxInt64-minima {
			return 0, fmt.Errorf("distribute to target %q: the minima up to here exceed int64: %w", t.Key, ErrMalformed)
		}
		minima += t.Min
	}
	return minima, nil
}

func (t Target) validate() error {
	switch {
	case t.Weight < 0:
		return fmt.Errorf("weight %d is below 0: %w", t.Weight, ErrMalformed)
	case t.Min < 0:
		return fmt.Errorf("min %d is below 0: %w", t.Min, ErrMalformed)
	case t.Max != Unbounded && t.Max < t.Min:
		return fmt.Errorf("max %d is below min %d: %w", t.Max, t.Min, ErrMalformed)
	case t.Current < 0:
		return fmt.Errorf("current %d is below 0: %w", t.Current, ErrMalformed)
	}
	return nil
}
