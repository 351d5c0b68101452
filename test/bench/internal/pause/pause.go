// SPDX-License-Identifier: Apache-2.0

// Package pause waits between the steps of a benchmark.
package pause

import (
	"context"
	"time"
)

// For waits for so long, or until ctx ends.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
