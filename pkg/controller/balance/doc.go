// SPDX-License-Identifier: Apache-2.0

// Package balance coordinates the MachineDeployments of different zones: it splits growth over
// similar ones, evens out replicas, and spreads the excess of a pool. Package plan decides.
//
// Watches: the machine API; Nodes, pods, volumes and PodDisruptionBudgets of the target cluster;
// Gardener's Worker and Cluster. Writes: the annotations share, move and applied-replicas, and
// bounds that no user wrote; during a move, replicas and the names of machines to delete;
// conditions; events. Never: a Machine, a Node or a pod; replicas in mode Off.
//
// A machine moves from a to b by these writes:
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
//  1. Only owners change the sum of a group's replicas. A move that has begun ends, whatever
//     crashes, and each replica arrives once.
//  2. Growth is split within max before machines are created. Members with invalid bounds get none
//     and take part in no move.
//  3. Growth goes only where every waiting pod that it could serve can run, or, if none waits, one
//     running pod.
//  4. A group moves one machine at a time, once its replacement is ready and its pods may go there,
//     and none while too many Nodes are unready.
//  5. Only replicas count for skew, not reserve machines.
//  6. Shares of a pool add up to its excess, or to the room. Others take over for a failed member,
//     which tries one machine more.
//  7. Of equal members, the one with fewer machines has the larger share. Names decide only ties.
//  8. Bounds that a user wrote stay.
//  9. At rest, nothing is written.
//  10. An invalid setting affects only its own member, and a condition reports it.
//  11. Without a known max, a MachineDeployment of Gardener gets no reserve and no growth.
//  12. If the Worker cannot be read, a pool's bounds come from its worker's annotation, split over
//     zones as Gardener does.
//  13. A hibernated Shoot has no reserve. Without its Cluster, zero replicas everywhere or forced
//     deletion of all Machines count as hibernation.
package balance
