// SPDX-License-Identifier: Apache-2.0

// Package requeue combines the times after which a key is synced again though nothing has changed.
// 0 means that it need not be.
package requeue

import "time"

// Sooner returns the shorter of two waits. A wait of 0 or less counts as none.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(0, b)
	}
	return a
}
