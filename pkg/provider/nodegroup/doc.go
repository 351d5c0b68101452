// SPDX-License-Identifier: Apache-2.0

// Package nodegroup shows MachineDeployments that have bounds to cluster-autoscaler as node groups: its external gRPC
// provider, by which an unmodified cluster-autoscaler drives machine-controller-manager.
//
//	cluster-autoscaler --gRPC--> Server --reads--> package pool, on what its informers hold, and over it what it wrote itself
//	                                    --plan---> NewRaise, NewRemoval, NewWithdrawal
//	                                    --writes-> one patch of the MachineDeployment
//
// Watches: MachineDeployments, MachineSets, Machines and MachineClasses of one namespace, Nodes of the target cluster.
// Writes: spec.replicas of a MachineDeployment with bounds, by compare-and-swap; with it the names of machines that are to
// go, in the annotation of machine-controller-manager that is made for it, and the replicas that may be acted on, where
// growth is being split.
// A machine that was named and is still there ten seconds later is seen to by one more write, the only one that no call asks for.
// Never: a Machine or a Node; a MachineDeployment without bounds; spec.excessReplicas.
//
// The reserve is outside of all numbers. cluster-autoscaler can always raise a group to its max, and what of the reserve has
// no room then gives way; it never learns how much there is. docs/autoscaler.md has the reasons.
//
// Laws:
//
//  1. The target size is spec.replicas and the largest is the max of the bounds. The reserve is in neither.
//  2. A Node is in reserve if the request says so: what is told of it there belongs to the taints that the caller
//     simulates with. A Node that says nothing is in reserve while its Machine is.
//  3. Instances are all machines but those in reserve, each once, by the provider id of its Node if it has registered and by a
//     placeholder until then.
//  4. Who writes reads it back with the next call.
//  5. A call that writes makes one patch that carries the resourceVersion it was decided on. A patch whose answer was
//     lost is never made twice: where it cannot be known whether it took effect, the call says so and nothing more is done.
//  6. Replicas never pass max by a call of ours, and fall below min by none.
//  7. Naming a machine that leaves, or is gone, is a success that changes nothing, however late the watch of Machines is: a
//     machine that is to go is read from the API server first. A machine in reserve is named without lowering replicas.
//  8. What was asked for and does not exist yet can be withdrawn, growth that waits to be split over zones included; nothing that
//     exists is deleted for it.
//  9. Every reading call is answered from memory.
//  10. A MachineDeployment whose bounds cannot be read is no group, and no other group is affected.
//  11. When Run returns no call is under way, no connection is open and nothing is written any more.
//  12. A raise counts from what there was when the caller's loop began. What others have raised since is a part of it.
//  13. A Node of a call is found by its provider id. If its name belongs to another machine, a write is refused and a read finds no group.
package nodegroup
