// SPDX-License-Identifier: Apache-2.0

// Package machinedeployment runs MachineSets, as machine-controller-manager's MachineSet controller
// does. It will run MachineDeployments, too, and then replace machine-controller-manager's three
// controllers.
//
//	MachineSets, Machines ---+
//	Nodes                    +-> plan.View -> plan.New -> Machines, MachineSets
//	answers to own writes ---+
//
// One key is synced at a time for a MachineDeployment with its MachineSets, or for a MachineSet that
// has no MachineDeployment. So far, a MachineSet whose MachineDeployment exists is left alone.
//
// Watches: MachineSets, Machines and MachineDeployments of the control cluster; Nodes of the target
// cluster.
//
// Writes: Machines: creation, deletion, what they take from the template, the preserve annotation,
// the phase Terminating; owner references of Machines; the finalizer and the status of MachineSets;
// events of MachineSets.
//
// Never: the spec of a MachineSet; a machine that another object controls; the template's class name,
// labels and annotations in Machines that exist.
//
// Laws:
//
//  1. A MachineSet has the machines that it controls and selects. It adopts what it selects and nothing
//     controls, and releases what it controls and does not select, before it counts.
//  2. It creates what is missing, no more, also where its stores do not show yet what it created. Where
//     it creates, it deletes nothing.
//  3. It deletes machines beyond replicas in the documented order, those named for deletion, and failed
//     ones that nothing preserves: each at the version that was looked at, if the MachineSet is still as
//     it was looked at.
//  4. A MachineSet that is deleted takes its machines along, and goes last.
//  5. A MachineSet whose spec is invalid says so, and nothing else is done about it until it is deleted.
//  6. Whatever is late, fails or crashes, the end is the same, and at rest nothing is written.
package machinedeployment
