// SPDX-License-Identifier: Apache-2.0

// Package storm runs processes against a simulated API server in virtual time,
// kills them between any two of their writes, starts them again, and tells
// with one line how a run that failed is repeated.
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
// A process is killed as kill -9 does it: from that moment none of its requests
// takes effect, whatever its goroutines still try.
//
// Seeds decide what the simulated server does; the order in which goroutines
// run is not theirs to decide. So a run that failed fails again often, not
// always: try several times.
package storm
