// SPDX-License-Identifier: Apache-2.0

// Package storm runs processes against a simulated API server in virtual time, kills them between
// any two of their writes, restarts them, and prints one line that reproduces a failed run.
//
//	err := storm.CrashPoints(suite, storm.Scenario{
//		Story: func(w *storm.World) {
//			w.Start("balancer", runBalancer)
//			...
//			w.Settle(time.Minute, time.Hour)
//		},
//		End: func(w *storm.World) any { return w.Objects(things) },
//	}, "balancer")
//	Expect(err).NotTo(HaveOccurred())
//
// A process is killed as by kill -9: from that moment on, none of its requests takes effect,
// whatever its goroutines still try.
//
// Seeds decide what the simulated server does, but not the order in which goroutines run. A failed
// run therefore fails again often, but not always: try several times.
package storm
