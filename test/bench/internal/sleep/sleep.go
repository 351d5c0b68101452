// SPDX-License-Identifier: Apache-2.0

// Package sleep waits between the steps of a benchmark.
package sleep

import (
	"context"
	"time"
)

// WithContext returns after a duration, or with an error when ctx ends before.
func WithContext(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
