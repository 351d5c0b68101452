// SPDX-License-Identifier: Apache-2.0

// Package extension is the controller of Extensions of type evenkeel.
//
// Watches: Extensions, through Gardener's library, which calls the actuator when gardenlet asks.
// Reads: the Cluster of the Shoot; while the extension is removed, the Deployment
// machine-controller-manager, MachineDeployments, MachineSets and Machines. Writes: status.state
// and a condition of the Extension, and what packages additions and nodegroups contain; the
// Deployments cluster-autoscaler and machine-controller-manager, where these are changed for an
// unmodified cluster-autoscaler that is not wanted; the Reserves of CapacityBuffers, which it
// deletes where these are not wanted; while the extension is removed, the annotation drain-reserve
// of MachineDeployments, and the Deployment. Never: Machines, Nodes, replicas, the Shoot.
//
// Laws:
//
//  1. A configuration that is wrong changes nothing: the last accepted one counts, and a condition
//     says what to write. The reconcile succeeds, because an error would stop the reconcile of the
//     whole Shoot.
//  2. The extension is removed in this order: the reserve is drained by Evenkeel, the stock image
//     returns, and the annotation that drained is removed when no pod of Evenkeel is left.
//  3. Each step is repeated until it is seen to be done, also after a restart.
//  4. Where stock machine-controller-manager runs already, or the Shoot is being deleted, there is
//     nothing to drain.
//  5. What was added stays as long as Evenkeel may run, and is gone with the Extension. When a control
//     plane migrates, the rights in the Shoot stay for the other seed.
//  6. Where CapacityBuffers are not wanted any more, the manager loses the right to create Reserves for
//     them, then these are deleted until none is left, and then it loses its other rights for them. It
//     serves Reserves until the end. CapacityBuffers themselves are never deleted.
//  7. Where an unmodified cluster-autoscaler is not wanted any more, the fork returns first, then the
//     manager loses its server, and then the certificates are deleted: no pod is ever to start that
//     mounts a Secret which is gone. Only if the fork's command or image is lost, nothing waits for
//     gardenlet to write it: that happens after the reconcile of the Extension.
package extension
