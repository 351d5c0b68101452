// SPDX-License-Identifier: Apache-2.0

// Package balance keeps MachineDeployments of different zones together: it splits growth over similar ones, evens out what
// is uneven, and spreads the excess of a pool.
//
//	MachineDeployments -+
//	Machines, Nodes ----+                       +-> replicas, applied replicas, moves
//	pods, budgets ------+-> View -> NewPlan ----+-> shares of a pool's excess
//	Gardener's Worker --+                       +-> bounds
//	                                            +-> conditions, events
//
// Watches: MachineDeployments, MachineSets, Machines and MachineClasses of one namespace; Nodes, pods, volumes and
// PodDisruptionBudgets of the target cluster; where a Gardener is, its Worker and Cluster.
// Writes: on MachineDeployments the annotations share, move, applied-replicas, and bounds where a user wrote none; their
// replicas and the annotation that names machines for deletion, while something is moved; two conditions; events.
// Never: a Machine, a Node or a pod; replicas of a MachineDeployment in mode Off.
//
// The life of a move of replicas, from a to b. Each arrow is one write, guarded by the version it was decided on.
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
// While no machine of a may go, or b makes none, the move waits: growth is acted on where it is asked for, and no other
// member gives to a. It ends where a is deleted or its owner scales it to 0, since then no machine of a is left to go.
//
// # Laws
//
// The tests cite them by number.
//
//  1. The sum of replicas over a group changes by nobody's doing but its owners': a move that has begun ends, whoever is
//     killed where, and each replica arrives once.
//  2. Growth is split before a machine is made for it, and no member passes the max of its bounds by it.
//  3. A pod that waits and could run where growth was asked for can run wherever that growth goes. Where none waits, so can
//     one of the pods that run there, if any do.
//  4. One machine of a group moves at a time. What takes its place is ready before it goes, and no pod goes with it that
//     must not be evicted or could not run in the other zone. None moves while many of the cluster's Nodes are not ready.
//  5. Only replicas count for skew; machines in reserve do not.
//  6. Shares of a pool add up to its excess, or to what there is room for; a member that fails to make machines has what
//     it holds and, now and then, one more to try. What others stand in for is not given up before it is back.
//  7. Of equal members the one with least in all has the larger share; names and order decide only between those that
//     have the same.
//  8. Bounds that a user wrote are left alone.
//  9. At rest nothing is written.
//  10. What cannot be understood concerns the member that says it, and a condition tells.
//  11. A MachineDeployment of Gardener whose max is unknown gets no reserve, and no growth of others.
//  12. Where the Worker cannot be read, bounds of a whole pool come from the annotation of its worker, split over its zones as Gardener
//     splits minimum and maximum.
//  13. A Shoot that is hibernated has no reserve. Where the Cluster cannot be read, the Shoot counts as hibernated while replicas
//     of all its MachineDeployments are 0, or all its Machines are to be deleted by force.
package balance
