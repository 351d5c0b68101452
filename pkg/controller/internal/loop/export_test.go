// SPDX-License-Identifier: Apache-2.0

package loop

// NewFair is newFair.
var NewFair = newFair

// Parked returns how many keys are remembered because their syncs have panicked.
func (l *Loop) Parked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parkedUntil)
}
