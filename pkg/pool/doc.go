// SPDX-License-Identifier: Apache-2.0

// Package pool reads a MachineDeployment with its MachineSets, Machines, Nodes and pods into one
// [Snapshot]. It also contains the functions that write the number of machines for workload,
// [Resize], [Release] and [Apply], and those that put a machine in reserve or let it serve, [Mark]
// and [Unmark]. It reads which machines are named for deletion and how early a machine is deleted
// ([Named], [Priority]), and, in the same way as cluster-autoscaler, which pods may be evicted ([Evictor]).
//
//	informers' stores ---+
//	lists of a client ---+-> Source -> Read -> Snapshot: plain values, to decide by or to print
//	objects in a test ---+
//
// The controllers, the node groups and the plugin all use this package, so that they agree on these answers:
//
//  1. R, the number of machines for workload, is spec.replicas without the reserve machines that it
//     includes ([Applied.Counted]), but at most the annotation applied-replicas, if that is set.
//     There are to be R machines and the applied excess, wherever the reserve is counted.
//  2. A MachineSet belongs to the MachineDeployment that controls it by UID, and a Machine to its
//     MachineSet likewise.
//  3. A Machine names its Node in a label. Node names that are derived from addresses are reused: a
//     Node whose provider id contradicts the Machine's does not belong to the Machine.
//  4. A pod makes its machine busy unless a DaemonSet or the kubelet itself runs it, or it has
//     finished. A machine whose Node is missing although the machine runs, or did, counts as busy.
//  5. A machine is in reserve while it carries the mark, unless a pod runs there that does not
//     tolerate the taints that hold the machine: the reserve's taints in its node template, and
//     NoSchedule in any case.
//  6. A machine is leaving once it is deleted, terminating, or named for deletion, either by its
//     MachineDeployment or by priority 1 with a deletion time.
//  7. A ready Node of the current MachineSet shows what one machine offers: the first by the name
//     of its Machine, a schedulable Node before a cordoned one. Without such a Node, the
//     MachineClass does.
//  8. [Rollout] defines what a rollout is.
//
// The package is pure: its functions have no client, no clock and no logger. Neither the order nor
// the source of the objects affects an answer.
package pool
