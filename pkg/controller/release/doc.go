// SPDX-License-Identifier: Apache-2.0

// Package release gives machines of the reserve to pods that wait for room, before other components
// have noticed these pods.
//
//	waiting pods -----+
//	their creators ---+
//	running pods -----+-> plan.View -> plan.New -> replicas, nominations, events
//	Nodes, volumes ---+     (reserve.Decide decides which machine is next,
//	MachineDeployments,      fit.Pack how many are needed)
//	Machines
//
// It only raises spec.replicas. The controller of MachineDeployments then finds that fewer machines serve
// than replicas require, and removes the marks of as many reserve machines, from the Node first.
//
// Watches: pods, Nodes, DaemonSets, ReplicaSets, claims, volumes, storage classes and drivers of
// the target cluster, Jobs and PodGroups once a pod of one waits, and what decides about devices once a
// pod that claims some waits; MachineDeployments, MachineSets, Machines
// and MachineClasses of the control cluster.
//
// Writes: spec.replicas of MachineDeployments with bounds, together with the annotation
// applied-replicas if that is set, and claimed if machines are dedicated; status.nominatedNodeName of
// pods that dedicated machines are claimed for; events of MachineDeployments and of PodGroups.
//
// Never: a MachineDeployment without bounds, because no autoscaler would lower its replicas again;
// replicas above max; any other field of a pod; a Node or a Machine.
//
// Laws:
//
//  1. Replicas are raised by the number of machines that the waiting pods need, packed, and for
//     which there is no other room. If the scheduler has refused a pod, the pods that its
//     ReplicaSet or Job has yet to create count, too, after waiting pods of the same priority.
//     Serving machines count as room, and so do those that are about to be released, and those that
//     boot for replicas that are already requested. Of similar MachineDeployments whose machines hold
//     as much, the one with the fewest replicas comes first, then the one with the most in reserve.
//  2. A raise is bounded by max and by the ready machines in reserve, and each released machine has
//     a pod to run.
//  3. Each pod counts once, however often it is considered, until it is bound: a machine that was
//     raised for it counts as room from then on, also before any cache shows it, and after a
//     restart.
//  4. A pod does not cause a raise if it fits a serving machine, if preemption made room for it, if
//     it has scheduling gates, if it fits a reserve machine with its taint, or if no reserve
//     machine has room for it. If this cannot be decided, the pod is left to the autoscaler.
//  5. A pod that keeps waiting although there has been room is not understood. It is left to the
//     autoscaler, too.
//  6. Each write tests what it was decided on: the spec by its generation and its replicas, and the
//     annotations. At rest, and while no pod waits, nothing is written.
//  7. The cost of one decision is bounded, however many pods wait: see plan/bounds.go. What exceeds
//     the bounds is left to the autoscaler, and counted.
//  8. Nothing is decided while a cluster does not answer.
//  9. A dedicated machine is claimed for a pod of its owner, and for no other pod. Such pods use
//     these machines first, then those that are for all pods. Other pods leave as much room below
//     max as machines are dedicated. The pods that a dedicated machine is claimed for are nominated
//     for its Node before it opens, and again if they lose the nomination before that, unless
//     refusals show that the right is missing. A nomination for a Node that is gone, or in reserve
//     and not claimed, does not count.
//  10. Machines are released for as many pods of a PodGroup as start together, or for none. Groups come
//     by priority and age, each before pods of the same priority that start alone. If the choice of
//     nodes matters, a group gets machines only if its pods have room in several orders and by several
//     preferences.
package release
