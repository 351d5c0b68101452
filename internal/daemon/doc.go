// SPDX-License-Identifier: Apache-2.0

// Package daemon is what our long-running binaries have in common: how they connect to a cluster,
// report their health, take turns, and stop.
//
// Laws:
//
//  1. Everything ends with its context. No function of this package returns before all its
//     goroutines have ended, except for work that ignores its context for longer than its grace
//     period.
//  2. A process that has lost or released the lease does not work any more: Elect cancels the work
//     and waits for it before it releases the lease, and renews the lease in the meantime.
//  3. The lease is released on every exit while it is still held, so that a successor need not wait
//     until it expires. The exception is a write that was given up without an answer, because it
//     may still take effect.
//  4. The Gate closes with the context of the work. After that, no request is sent, however long a
//     worker continues that cannot be stopped. Requests in flight end within a second, whatever the
//     server does.
//  5. Nothing in this package exits the process or panics.
//  6. A process that is told to stop ends within three seconds, even if no API server answers. A
//     process that is told twice ends at once.
package daemon
