// SPDX-License-Identifier: Apache-2.0

package storm

import "github.com/evenkeel/evenkeel/internal/sim"

// Endless is how many changes of one object in one moment make a livelock.
const Endless = endless

// Livelock returns what notices one.
func Livelock() func(sim.Write) string { return new(livelock).observe }
