// SPDX-License-Identifier: Apache-2.0

package written

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// The pause between two attempts doubles from the first to the last of these.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Pause waits before the next attempt of a request. It fails once ctx or stop has ended.
func Pause(ctx, stop context.Context, c clock.Clock, attempt int) error {
	timer := c.NewTimer(min(firstPause<<min(attempt-1, 10), lastPause))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pause: %w", context.Cause(ctx))
	case <-stop.Done():
		return fmt.Errorf("pause: %w", context.Cause(stop))
	}
}
