// SPDX-License-Identifier: Apache-2.0

// Package extension is the controller of Extensions of type evenkeel.
//
// Watches: Extensions, through Gardener's library. Writes: status.state and a condition of the
// Extension; what packages additions and nodegroups contain; to undo these, the Deployments
// cluster-autoscaler and machine-controller-manager, the annotation drain-reserve, and the Reserves
// of CapacityBuffers. Never: Machines, Nodes, replicas, the Shoot.
//
// Laws:
//
//  1. A wrong configuration changes nothing: the last accepted one counts, and a condition
//     describes what to write.
//  2. On removal, Evenkeel drains the reserve, then the stock image returns, and then the
//     annotation drain-reserve goes.
//  3. Each step is repeated until it is seen to be done, also after a restart.
//  4. Nothing is drained if stock machine-controller-manager runs, or the Shoot is being deleted.
//  5. What was added stays while Evenkeel may run, and goes with the Extension, except rights in
//     the Shoot during a migration.
//  6. If CapacityBuffers are disabled, the manager loses the right to create their Reserves, then
//     these are deleted, then it loses its other rights.
//  7. If an unmodified cluster-autoscaler is disabled, the fork returns, then the manager loses its
//     server, and then the certificates are deleted.
package extension
