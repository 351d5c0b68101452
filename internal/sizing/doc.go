// SPDX-License-Identifier: Apache-2.0

// Package sizing predicts what a reserve costs and how long pods wait with it, and suggests a size.
//
//	demand.Trace --+
//	Setup ---------+-> Run -> Outcome: machine hours, waits
//	Policy --------+      (reserve.Decide and fit.Pack decide, in virtual time)
//
//	Run for many policies -> Size -> Report: the frontier, the smallest amount, a schedule
//
// The simulation decides as the controllers do, by their own code: package reserve decides which
// machines serve, which are in reserve and which are deleted; package fit decides how many machines
// the waiting pods need; package schedule decides which schedule is active. Everything else is a
// model:
//
//   - All machines are equal, and belong to one MachineDeployment. They boot in the given times, in
//     turn, and disappear at once when they are deleted.
//   - The scheduler binds a pod at once, to the fullest machine that has room for it. Pods that wait
//     are served in the order of their creation.
//   - Instant release sees a waiting pod at once. The pod runs on the machine after [Setup.Release].
//   - An autoscaler, if there is one, requests machines for waiting pods after a time, and removes a
//     machine that has been empty for a time. It does not move pods.
//   - Pods that were created before [Setup.From] run from the beginning, on machines of their own.
//
// Laws. The tests cite them by number.
//
//  1. The same input has the same outcome.
//  2. Every pod is counted once: it waited for some time, or it still waits a day after the end, and
//     counts as one that waited until then.
//  3. Without demand, there are no waits, and a fixed amount costs exactly itself.
//  4. A larger amount never costs fewer reserve machine hours, if no maximum limits it.
//  5. A schedule that is always active costs what the fixed amount of the same size costs, and pods
//     wait as long.
//  6. While no pod ends, and each needs a machine, a larger amount lets no more pods wait for a boot,
//     and none longer. If pods end, it may: pods that start earlier end earlier, and an autoscaler
//     removes their machines earlier, before others would have used them.
//  7. No machine on which pods run is deleted, and the number of machines stays within the maximum.
//  8. The suggested amount and the suggested schedule keep the desired wait in the simulation, and
//     the schedule is suggested only if it costs less.
//
// The package keeps no state, reads no clock and logs nothing.
package sizing
