// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
)

// allowance limits the work of the allocator. It is the context that the allocator is called with:
// the allocator asks it for an error at each step of its search, and for a channel before it
// evaluates a selector. So the limit depends on no clock.
type allowance struct {
	left int
	// step and evaluation are the costs of a step and of an evaluation.
	step, evaluation int
}

var errExhausted = errors.New("too much work")

// Err counts a step, and returns an error once nothing is left.
func (a *allowance) Err() error {
	a.left -= a.step
	if a.left < 0 {
		return errExhausted
	}
	return nil
}

// Done counts an evaluation. Evaluations are short, and are not interrupted.
func (a *allowance) Done() <-chan struct{} {
	a.left -= a.evaluation
	return nil
}

// Deadline returns none.
func (a *allowance) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value returns a logger that discards everything, so that the allocator does not log.
func (a *allowance) Value(any) any { return logr.Discard() }
