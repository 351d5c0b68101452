// SPDX-License-Identifier: Apache-2.0

// Package release gives machines of the reserve to pods that wait for room. It raises
// spec.replicas, and the controller of MachineDeployments then releases as many machines.
// reserve.Decide decides which, and fit.Pack how many.
//
// Watches: the machine API; Nodes, pods, and what decides where pods can run. Writes: spec.replicas
// of MachineDeployments, with the annotations applied-replicas and claimed;
// status.nominatedNodeName of pods that dedicated machines are claimed for; events. Never: a
// MachineDeployment without bounds, because no autoscaler would lower its replicas; any other field
// of a pod; a Node or a Machine.
//
// Laws:
//
//  1. Replicas rise as waiting pods need, beyond room on serving, released and booting machines.
//     After a pod is refused, its owner's uncreated pods count.
//  2. A raise is within max and the ready reserve, and each released machine has a pod to run.
//  3. Each pod counts once until it is bound: a machine raised for it counts as room at once.
//  4. A pod causes no raise if it fits a serving or tainted reserve machine, is gated, has
//     preempted others, or cannot be judged.
//  5. A pod that keeps waiting beside room is left to the autoscaler.
//  6. Each write tests what it was decided on. At rest, or while no pod waits, nothing is written.
//  7. A decision's cost is bounded. Pods beyond plan/bounds.go are left to the autoscaler.
//  8. Nothing is decided while a cluster does not answer.
//  9. Only pods of its owner claim a dedicated machine, are nominated for its Node, and use such
//     machines first. Others leave room below max for these.
//  10. Machines are released for all pods of a PodGroup that start together, or for none, by
//     priority and age.
package release
