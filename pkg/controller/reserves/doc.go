// SPDX-License-Identifier: Apache-2.0

// Package reserves spreads the machines that Reserves ask for over MachineDeployments.
//
//	Reserves ------------+
//	MachineDeployments --+-> View -> NewPlan -> the annotation requested-excess, status and events of Reserves
//	Machines, Nodes -----+    (schedule.Window decides which schedules are active, distribute spreads the machines)
//
// It asks, and that is all: the machine-taint controller reads the annotation beside the other places where an excess is asked for,
// and keeps the machines (law 13 of package reserve).
//
// Watches: Reserves, MachineDeployments, MachineSets, Machines and MachineClasses of the control cluster; Nodes of the target cluster.
//
// Writes: the annotation requested-excess of MachineDeployments; status and events of Reserves.
//
// Never: anything else of a MachineDeployment; the spec of a Reserve; a Machine, a Node or a pod.
//
// Laws:
//
//  1. A Reserve asks for the largest of replicas, amount and the schedules that are active. Percentages are of the replicas of all its
//     MachineDeployments together, and resources are counted in the smallest of their machines.
//  2. Its machines are spread evenly over its MachineDeployments, within the max of each. What has been spread stays where it is as long
//     as that is as even.
//  3. Of several Reserves that ask for machines of one MachineDeployment, the one that asks for most counts. Names decide ties.
//  4. While machines cannot be created in one MachineDeployment, others stand in, and it keeps one for the next try. No ready machine
//     goes before the one that stands in for it is ready.
//  5. A Reserve that cannot be understood asks for what it asked for before.
//  6. A MachineDeployment that no Reserve asks for has no annotation.
//  7. Nothing is remembered: each look decides from the objects and the time. The status of a Reserve holds how its machines are spread.
//  8. What cannot hold a reserve gets none: a MachineDeployment that is drained of its reserve, one of a cluster that hibernates, and one
//     of a Gardener while its max is not known.
//  9. At rest nothing is written, whatever the time, unless a schedule begins or ends.
//  10. What one Reserve says affects no other, but for law 3.
package reserves
