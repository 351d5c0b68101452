// SPDX-License-Identifier: Apache-2.0

// Package machinedeployment runs MachineDeployments and MachineSets, as machine-controller-manager's
// controllers do, which it will replace.
//
//	MachineDeployments,
//	MachineSets, Machines ---+
//	Nodes                    +-> plan.View -> plan.New -> MachineDeployments, MachineSets, Machines, Nodes
//	answers to own writes ---+
//
// One key is synced at a time for a MachineDeployment with its MachineSets, or for a MachineSet that
// has no MachineDeployment. All that is decided about them is one plan.
//
// Watches: MachineDeployments, MachineSets and Machines of the control cluster; Nodes of the target
// cluster.
//
// Writes: MachineDeployments: the finalizer, the revision, the status. MachineSets: creation, deletion,
// their size, what they take from their MachineDeployment, the finalizer, the status. Machines: creation,
// deletion, what they take from the template, the preserve annotation, the phase Terminating. Owner
// references of MachineSets and Machines. Nodes: a taint and annotations in rollouts. Events.
//
// Never: the replicas of a MachineDeployment, nor those of a MachineSet that has none; a MachineSet or a
// machine that another object controls; the template's class name, labels and annotations in Machines that
// exist.
//
// Laws:
//
//  1. A MachineSet has the machines that it controls and selects. It adopts what it selects and nothing
//     controls, and releases what it controls and does not select, before it counts. So does a
//     MachineDeployment with MachineSets.
//  2. It creates what is missing, no more, also where its stores do not show yet what it created. Where
//     it creates, it deletes nothing.
//  3. It deletes machines beyond replicas in the documented order, those named for deletion, and failed
//     ones that nothing preserves: each at the version that was looked at, if the MachineSet is still as
//     it was looked at.
//  4. A MachineSet that is deleted takes its machines along, and goes last. So does a MachineDeployment with
//     its MachineSets.
//  5. What is invalid says so, and nothing else is done about it until it is deleted. The MachineSets of an
//     invalid MachineDeployment go on.
//  6. Whatever is late, fails or crashes, the end is the same, and at rest nothing is written.
//  7. A MachineDeployment comes to have all its machines in one MachineSet, that of its template, which is
//     created once.
//  8. In a rollout, RollingUpdate has at no time more machines than replicas and surge, those that are
//     leaving included, and deletes none that serves below what may be unavailable, unless it is named,
//     preferred by priority, or others are preserved. Recreate has machines of one template.
//  9. Where there are many more machines than replicas, it is frozen, which means that it creates none, until
//     enough of them have gone. Its own creations are counted exactly, so this is for machines that others
//     create or restore, and for those that do not leave.
package machinedeployment
