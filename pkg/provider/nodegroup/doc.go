// SPDX-License-Identifier: Apache-2.0

// Package nodegroup serves MachineDeployments with bounds as node groups to cluster-autoscaler.
// With this external gRPC provider, an unmodified cluster-autoscaler scales machines of
// machine-controller-manager.
//
//	cluster-autoscaler --gRPC--> Server --reads--> package pool, over informers and its own recent writes
//	                                    --plan---> package plan: NewRaise, NewRemoval, NewWithdrawal
//	                                    --writes-> one patch of the MachineDeployment
//
// Watches: MachineDeployments, MachineSets, Machines and MachineClasses of one namespace, Nodes of
// the target cluster. Writes: spec.replicas of a MachineDeployment with bounds, by
// compare-and-swap; together with it, the names of machines to delete, in
// machine-controller-manager's annotation for this purpose, and the applied replicas, if growth is
// being split. If a named machine still exists ten seconds later, one more write repeats its
// deletion: the only write without a call. Never: a Machine or a Node; a MachineDeployment without
// bounds; spec.excessReplicas.
//
// No number includes the reserve. cluster-autoscaler can always raise a group to its max, and the
// reserve shrinks if it has no room; cluster-autoscaler never learns its size. See
// docs/autoscaler.md for the reasons.
//
// Laws:
//
//  1. The target size is spec.replicas and the largest is the max of the bounds. The reserve is in
//     neither.
//  2. A Node is in reserve if the request contains its mark, which matches the taints of the
//     caller's simulation. Without the mark, a Node is in reserve while its Machine is.
//  3. Instances are all machines except those in reserve, each once, by the provider id of its
//     Node, or by a placeholder until the Node has registered.
//  4. A client that writes reads its write with the next call.
//  5. A call that writes sends one patch with the resourceVersion that it was decided on. A patch
//     whose answer was lost is never repeated if its outcome is unknown: the call reports this, and
//     does nothing more.
//  6. No call raises replicas above max, or lowers them below min.
//  7. Naming a machine that is leaving, or that no longer exists, succeeds and changes nothing,
//     however late the watch of Machines is: a machine is read from the API server before it is
//     deleted. Naming a reserve machine does not lower replicas. Naming a machine by its
//     placeholder is refused once its Node has registered.
//  8. Requested machines that do not exist yet can be withdrawn, including growth that is still to
//     be split over zones. No existing machine is deleted for this, however late the watch of
//     Machines is: they are listed from the API server first.
//  9. Calls that only read are answered from memory.
//  10. A MachineDeployment with invalid bounds is not a group, and does not affect other groups.
//  11. When Run returns, no call is in progress, no connection is open, and nothing is written
//     afterwards.
//  12. A raise counts from the replicas when the caller's loop began. It includes what others have
//     raised since.
//  13. A Node of a call is found by its provider id. If its name belongs to another machine, a
//     write is refused and a read finds no group.
package nodegroup
