// SPDX-License-Identifier: Apache-2.0

// Package pool reads a MachineDeployment with its MachineSets, Machines, Nodes and pods into one
// [Snapshot], so that all packages agree on the answers below. It also writes R ([Resize],
// [Release], [Apply]) and marks ([Mark], [Unmark]). It is pure.
//
//  1. R, the number of machines for workload, is spec.replicas without the reserve that it includes
//     ([Applied.Counted]), and at most applied-replicas, if that is set.
//  2. MachineSets and Machines belong to what controls them by UID.
//  3. A Machine names its Node in a label. A Node with another provider id is not its own.
//  4. A pod makes its machine busy unless a DaemonSet or the kubelet runs it, or it has finished. A
//     machine whose Node is gone is busy.
//  5. A machine is in reserve while it has the mark, unless a pod runs there that does not tolerate
//     the reserve's taints.
//  6. A machine is leaving once it is deleted, terminating, or named for deletion.
//  7. A ready Node of the current MachineSet shows what a machine offers, or else the MachineClass.
//  8. [Rollout] defines what a rollout is.
package pool
