// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"sync/atomic"
)

// Readiness of a process that takes turns. A process that waits for its turn is ready: otherwise, a
// Deployment could never replace the pod that holds the lease.
type Readiness struct {
	waiting, filled atomic.Bool
}

// Wait records that another instance holds the lease.
func (r *Readiness) Wait() { r.waiting.Store(true) }

// Lead records that this instance leads. It is ready again when the caches are Filled.
func (r *Readiness) Lead() { r.waiting.Store(false) }

// Filled: the caches are complete.
func (r *Readiness) Filled() { r.filled.Store(true) }

// Check is the check for /readyz.
func (r *Readiness) Check() error {
	if r.waiting.Load() || r.filled.Load() {
		return nil
	}
	return errors.New("caches are not filled yet")
}
