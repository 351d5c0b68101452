// SPDX-License-Identifier: Apache-2.0

// Package dryrun predicts what the controllers will do, and the result. It writes nothing.
//
//	clusters -> Objects --------------------------+
//	changes  -> applied to these in memory -------+-> world: plans, carried out in memory
//	            Forecast: steps now, and the end <+          machines that boot, pods that follow
//
// The plans are the controllers' own: each controller's preview reads the objects with the same
// code that reads a cluster, and decides by its own rules. The rest is modeled:
//
//   - Updates in place end where the agents of the Nodes begin.
//   - Schedules of Reserves stand still, and what CapacityBuffers refer to stays as it was read.
//   - Machines boot, and disappear when they are deleted. If some cannot be created now, no more can
//     be created.
//   - Pods of a deleted machine move to the serving machine of its MachineDeployment with the fewest
//     pods.
//   - Workloads start the requested replicas, except for blocked targets.
//
// Nothing else changes: there is no autoscaler, user or failure.
package dryrun
