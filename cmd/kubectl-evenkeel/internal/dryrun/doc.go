// SPDX-License-Identifier: Apache-2.0

// Package dryrun foretells what the controllers will do, and what becomes of it. It writes nothing.
//
//	clusters -> Objects --------------------------+
//	changes  -> applied to these in memory -------+-> world: plans, carried out in memory
//	                                              |          machine-controller-manager's answers
//	            Forecast: steps now, and the end <+          machines that boot, pods that follow
//
// The plans are those of the controllers: each controller's preview looks at the objects with the very code with which it
// looks at a cluster, and decides by its own NewPlan. What others do is a model:
//
//   - machine-controller-manager deletes in its own order, which is its own code. Machines that it cannot tell apart are a
//     tie: how many of them go is foretold, not which.
//   - Machines boot, and are gone when they are deleted. Where some cannot be made now, no more can be.
//   - Pods of a machine that goes find a place on the emptiest machine of its MachineDeployment that serves.
//   - Workloads start what they are asked for, but for targets that are blocked.
//
// Nobody else changes anything: no autoscaler, no user, no failure.
package dryrun
