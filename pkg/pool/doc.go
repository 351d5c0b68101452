// SPDX-License-Identifier: Apache-2.0

// Package pool reads a MachineDeployment with its MachineSets, Machines, Nodes and pods into one [Snapshot]. It also has the
// functions that write the number of machines for workload: [Resize], [Release] and [Apply].
//
//	informers' stores ---+
//	lists of a client ---+-> Source -> Read -> Snapshot: plain values, for whoever decides or prints
//	objects in a test ---+
//
// The lens, the controllers, the node groups and the plugin ask here, so that they agree. These are the answers:
//
//  1. R, the number of machines for workload, is spec.replicas without the reserve machines that this includes ([Applied.Counted]), but
//     no more than the annotation applied-replicas where that is set. Machine-controller-manager sees R and the applied excess, so
//     where the reserve is counted changes nothing for it.
//  2. A MachineSet belongs to the MachineDeployment that controls it by UID, and a Machine to its MachineSet likewise.
//  3. A Machine names its Node in a label. Node names are reused where they come from addresses: a Node whose provider id
//     contradicts the Machine's is not the Machine's.
//  4. A pod makes its machine busy unless a DaemonSet or the kubelet itself runs it, or it has finished. A machine whose Node
//     is not seen though it runs, or did, counts as busy.
//  5. A machine is in reserve while it carries the mark, except where a pod runs that does not tolerate the taints by which
//     the machine is held: those of the reserve in its node template, and NoSchedule in any case.
//  6. A machine leaves once it is deleted, terminating, or named for deletion, either by its MachineDeployment or by
//     priority 1 with a deletion time.
//  7. What one machine is like is what a Node of the current MachineSet shows that is ready, the first by the name of its Machine, and
//     a schedulable one rather than one that is cordoned; else what the MachineClass promises.
//  8. What a rollout is, see [Rollout].
//
// The package is pure: its functions have no client, no clock and no logger. Neither the order nor the source of the objects
// changes an answer.
package pool
