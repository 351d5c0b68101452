// SPDX-License-Identifier: Apache-2.0

// Package balance coordinates MachineDeployments of different zones: it splits growth over similar
// ones, evens out uneven replicas, and spreads the excess of a pool.
//
//	MachineDeployments -+
//	Machines, Nodes ----+                            +-> replicas, applied replicas, moves
//	pods, budgets ------+-> plan.View -> plan.New ---+-> shares of a pool's excess
//	Gardener's Worker --+                            +-> bounds
//	                                                 +-> conditions, events
//
// The package plan below decides. This one observes, carries plans out, and previews them.
//
// Watches: MachineDeployments, MachineSets, Machines and MachineClasses of one namespace; Nodes,
// pods, volumes and PodDisruptionBudgets of the target cluster; Gardener's Worker and Cluster, if
// Gardener exists. Writes: on MachineDeployments, the annotations share, move, applied-replicas,
// and bounds if a user wrote none; their replicas and the annotation that names machines for
// deletion, during a move; conditions; events. Never: a Machine, a Node or a pod; replicas of a
// MachineDeployment in mode Off.
//
// The life of a move of replicas, from a to b. Each arrow is one write, guarded by the version it
// was decided on.
//
//	           a                               b
//	           |   (a machine is moved) reserve|----> move{from a, reserve 1}, share + 1
//	           |                               |      ... it is ready
//	move{to b} |<---- promised                 |
//	           |                          taken|----> replicas + 1, move{from a, taken 1}, share - 1
//	           |                               |      ... it serves
//	replicas-1 |<---- given, machine named     |
//	           |                               |<---- move gone
//
// While no machine of a can be deleted, or b creates none, the move waits: growth stays where it is
// requested, and no other member gives to a. The move ends if a is deleted or scaled to 0, since
// then no machine of a is left to delete.
//
// # Laws
//
// The tests cite them by number.
//
//  1. Only owners change the sum of replicas of a group: a move that has begun ends, whatever
//     crashes, and each replica arrives once.
//  2. Growth is split before a machine is created for it. It takes no member above the max of its
//     bounds, and a member whose bounds are invalid gets none. No machine moves to such a member, or
//     from it.
//  3. A waiting pod that could run where growth was requested can run wherever that growth goes. If
//     none waits, so can at least one of the pods that run there, if any.
//  4. One machine of a group moves at a time. Its replacement is ready before it is deleted. A
//     machine stays if one of its pods must not be evicted or could not run in the other zone. No
//     machine moves while too many Nodes of the cluster are not ready. The replica of a machine that
//     cannot be created goes elsewhere only if machine-controller-manager would delete that machine
//     before any that serves.
//  5. Only replicas count for skew; reserve machines do not.
//  6. Shares of a pool add up to its excess, or to the available room. A member that fails to
//     create machines keeps those that it has and, from time to time, gets one more as a probe.
//     The same applies to one with too many Nodes that are not ready, and at once. Others keep its
//     share until its machines are ready again, and its Nodes for a while. A member that is being deleted has
//     no share, and that of a member whose bounds are invalid stays as it is.
//  7. Between equal members, the one with fewer machines in total has the larger share. Names and
//     order decide only ties.
//  8. Bounds that a user wrote are not changed.
//  9. At rest, nothing is written.
//  10. An invalid setting affects only its own member, and a condition reports it.
//  11. A MachineDeployment of Gardener whose max is unknown gets no reserve, and no growth from others.
//  12. If the Worker cannot be read, bounds of a whole pool come from the annotation of its worker.
//     They are split over its zones as Gardener splits minimum and maximum.
//  13. A hibernated Shoot has no reserve. If the Cluster cannot be read, the Shoot counts as
//     hibernated while replicas of all its MachineDeployments are 0, or all its Machines are to be
//     deleted by force. Until the Cluster has been read, that leaves shares as they are.
package balance
