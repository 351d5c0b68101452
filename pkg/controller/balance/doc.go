// SPDX-License-Identifier: Apache-2.0

// Package balance coordinates the MachineDeployments of different zones: it splits growth over
// similar ones, evens out uneven replicas, and spreads the excess of a pool. Package plan decides.
//
// Watches: the machine API in one namespace; Nodes, pods, volumes and PodDisruptionBudgets of the
// target cluster; Gardener's Worker and Cluster. Writes: the annotations share, move and
// applied-replicas, and bounds that no user wrote; during a move, replicas and the names of
// machines to delete; conditions; events. Never: a Machine, a Node or a pod; replicas in mode Off.
//
// A machine moves from a to b by these writes, each guarded by the version it was decided on:
//
//	           a                               b
//	           |                        reserve|----> move{from a, reserve 1}, share + 1
//	           |                               |      ... it is ready
//	move{to b} |<---- promised                 |
//	           |                          taken|----> replicas + 1, move{from a, taken 1}, share - 1
//	           |                               |      ... it serves
//	replicas-1 |<---- given, machine named     |
//	           |                               |<---- move gone
//
// Laws:
//
//  1. Only owners change the sum of a group's replicas: a move that has begun ends, whatever
//     crashes, and each replica arrives once.
//  2. Growth is split before machines are created for it, within max; members with invalid bounds
//     neither get any nor take part in moves.
//  3. Growth goes only where every waiting pod that it could serve can run, too, or, if none waits,
//     at least one running pod.
//  4. One machine of a group moves at a time, once its replacement is ready and its pods may be
//     evicted and fit there. None moves while too many Nodes are not ready.
//  5. Only replicas count for skew; reserve machines do not.
//  6. Shares of a pool add up to its excess, or to the room; a member that fails keeps its machines
//     and tries one more. Others take over until it has recovered.
//  7. Of equal members, the one with fewer machines has the larger share; names and order decide
//     only ties.
//  8. Bounds that a user wrote stay.
//  9. At rest, nothing is written.
//  10. An invalid setting affects only its own member, and a condition reports it.
//  11. Without a known max, a MachineDeployment of Gardener gets no reserve and no growth.
//  12. If the Worker cannot be read, bounds of a pool come from its worker's annotation, split over
//     zones as Gardener splits minimum and maximum.
//  13. A hibernated Shoot has no reserve; without its Cluster, zero replicas everywhere or forced
//     deletion of all Machines count as hibernation. Until the Cluster is read, shares then stay as
//     they are.
package balance
