// SPDX-License-Identifier: Apache-2.0

// Package release gives machines of the reserve to pods that wait for room, before other components
// notice these pods. It raises spec.replicas, and the controller of MachineDeployments then
// releases as many machines. reserve.Decide decides which, and fit.Pack how many.
//
// Watches: the machine API; Nodes, pods, and what decides where pods can run. Writes: spec.replicas
// of MachineDeployments, with the annotations applied-replicas and claimed;
// status.nominatedNodeName of pods that dedicated machines are claimed for; events. Never: a
// MachineDeployment without bounds, because no autoscaler would lower its replicas; any other field
// of a pod; a Node or a Machine.
//
// Laws:
//
//  1. Replicas rise by the machines that waiting pods need, packed, beyond the room on machines
//     that serve, are being released, or boot for replicas. After a pod is refused, its owner's
//     uncreated pods count.
//  2. A raise is within max and the ready reserve, and each released machine has a pod to run.
//  3. Each pod counts once until it is bound: a machine raised for it counts as room, even before
//     caches show it or after a restart.
//  4. A pod causes no raise if it fits a serving machine or a tainted reserve machine, is gated,
//     has preempted others, or cannot be judged.
//  5. A pod that keeps waiting beside room is left to the autoscaler.
//  6. Each write tests the generation, replicas and annotations that it was decided on; at rest, or
//     while no pod waits, nothing is written.
//  7. A decision's cost is bounded; pods beyond plan/bounds.go are counted and left to the
//     autoscaler.
//  8. Nothing is decided while a cluster does not answer.
//  9. A dedicated machine is claimed only for pods of its owner, which use such machines first and
//     are nominated for its Node. Other pods leave room below max for dedicated machines.
//  10. Machines are released for as many pods of a PodGroup as start together, or for none, in
//     order of priority and age.
package release
