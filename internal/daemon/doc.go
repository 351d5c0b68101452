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
//     run out; unless a write was given up without an answer, since that may still take effect.
//  4. The Gate closes with the context of the work. Behind a closed Gate nothing is asked or written any more, however
//     long a worker that cannot be stopped goes on. Requests under way are over a second later, whatever the server does.
//  5. Nothing here exits the process or panics.
//  6. A process that is told to stop ends within three seconds, also when no API server answers. One that is told twice
//     ends at once.
package daemon
