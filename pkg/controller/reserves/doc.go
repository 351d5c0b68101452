// SPDX-License-Identifier: Apache-2.0

// Package reserves spreads the machines that Reserves request over MachineDeployments.
//
//	Reserves ------------+
//	MachineDeployments --+-> plan.View -> plan.New -> the annotation requested-excess,
//	Machines, Nodes -----+                            status and events of Reserves
//
// In package plan, schedule.Window decides which schedules are active, and package distribute
// spreads the machines.
//
// It only requests machines: the controller of MachineDeployments reads the annotation, in addition to the
// other places where an excess is requested, and keeps the machines (law 13 of package reserve).
//
// Watches: Reserves, MachineDeployments, MachineSets, Machines and MachineClasses of the control
// cluster; Nodes of the target cluster.
//
// Writes: the annotations requested-excess and dedicated of MachineDeployments; status and events
// of Reserves.
//
// Never: anything else of a MachineDeployment; the spec of a Reserve; a Machine, a Node or a pod.
//
// Laws:
//
//  1. A Reserve requests the largest of replicas, amount and the active schedules. Percentages refer
//     to the replicas of all its MachineDeployments together, and resources are counted by the
//     smallest of their machines.
//  2. Its machines are spread evenly over its MachineDeployments, within the max of each. Machines
//     stay where they are while that is equally even.
//  3. If several Reserves request machines of one MachineDeployment, the largest request counts.
//     Names decide ties.
//  4. While machines cannot be created in one MachineDeployment, others stand in, and it keeps one
//     machine for the next try, even beyond its share if it would stand in for others. No ready
//     machine is given up before its replacement is ready.
//  5. An invalid Reserve requests as many machines as before, unless it is suspended.
//  6. A MachineDeployment without a request has no annotation.
//  7. Nothing is remembered: each sync decides from the objects and the time. The status of a
//     Reserve contains how its machines are spread.
//  8. MachineDeployments that cannot have a reserve get none: those whose reserve is drained, those
//     in a cluster that hibernates, and those of a Gardener while their max is unknown.
//  9. At rest, nothing is written, whatever the time, unless a schedule begins or ends.
//  10. The content of one Reserve affects no other, except by law 3.
//  11. A Reserve of one MachineDeployment can dedicate machines to owners, no more than it requests.
//     A MachineDeployment dedicates no more machines than are requested there.
package reserves
