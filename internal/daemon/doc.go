// SPDX-License-Identifier: Apache-2.0

// Package daemon is what the long-running binaries have in common: how they connect to a cluster,
// report their health, take turns, and stop.
//
// Laws:
//
//  1. What a function starts ends with its context and before the function returns, except work
//     that ignores its context.
//  2. A process without the lease does not work. Elect cancels the work and waits for it, then
//     releases the lease.
//  3. The lease is released on every exit while it is held, unless a write may still take effect.
//  4. The Gate closes with the context of the work: no request is sent afterwards, and open ones
//     end within a second.
//  5. Nothing in this package exits the process or panics.
//  6. A process that is told to stop ends within three seconds, even without an API server. Told
//     twice, it ends at once.
package daemon
