// SPDX-License-Identifier: Apache-2.0

// Package release hands machines of the reserve to pods that wait for room, before anyone else has noticed them.
//
//	pods that wait ---+
//	their ReplicaSets +
//	pods that run ----+-> View -> NewPlan -> replicas of MachineDeployments, events
//	Nodes, volumes ---+      (reserve.NewPlan says which machine is next, fit.Pack how many it takes)
//	MachineDeployments, Machines
//
// It raises spec.replicas, and that is all: the machine-taint controller sees more wanted than serve, and takes the marks
// off as many machines of the reserve, Node first.
//
// Watches: pods, Nodes, DaemonSets, ReplicaSets, claims, volumes, storage classes and drivers of the target cluster; MachineDeployments,
// MachineSets, Machines and MachineClasses of the control cluster.
//
// Writes: spec.replicas of MachineDeployments with bounds, and with it the annotation applied-replicas where that is set;
// events.
//
// Never: a MachineDeployment without bounds, since nobody would bring its replicas down again; a replica above max;
// anything of a pod, a Node or a Machine.
//
// Laws:
//
//  1. Replicas are raised by as many machines as it takes to hold the pods that wait, packed, and that nothing else holds. With a
//     pod that the scheduler has refused those count that its ReplicaSet has yet to make.
//     What serves counts as room; what is about to be released, and what boots for replicas that are wanted already, too.
//  2. A raise is bounded by max and by the machines in reserve that are ready, and each machine opened has a pod to hold.
//  3. Each pod counts once, however often it is looked at, until it is bound: what was raised for it is room from then on,
//     also before any cache shows it, and after a restart.
//  4. A pod is nobody's reason to raise anything where it fits what serves, where a place has been made for it by
//     preemption, where it is gated, where it fits a machine in reserve as that is, or where no machine in reserve could
//     hold it. Nor where it cannot be told: that is left to the autoscaler.
//  5. A pod that goes on waiting though there has been room is one that is not understood. It is left to the autoscaler, too.
//  6. Each write tests what it was decided on: the spec by its generation and its replicas, and the annotations. At rest, and while nobody waits, nothing is written.
//  7. What one decision costs is bounded, whatever waits: see bounds.go. What is beyond is left to the autoscaler, and counted.
//  8. Nothing is decided on what was last seen of a cluster that does not answer.
package release
