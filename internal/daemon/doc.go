// SPDX-License-Identifier: Apache-2.0

// Package daemon is what our two long-running binaries share: how they reach a cluster, how they tell their
// health, how they take turns, and how they stop.
//
// Laws:
//
//  1. Everything ends with its context. No function here returns before every goroutine it started has ended,
//     except work that ignores its context for longer than the grace it was given.
//  2. Who has lost or given up the lease no longer works: Elect cancels the work and waits for it before it lets
//     go of the lease, and renews the lease while it waits.
//  3. The lease is let go on every way out on which it is still held, so that a successor need not wait for it to
//     run out.
//  4. Behind a closed Gate nothing is written any more, however long a worker that cannot be stopped goes on.
//  5. Nothing here exits the process or panics.
package daemon
