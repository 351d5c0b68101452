// SPDX-License-Identifier: Apache-2.0

// Package machinedeployment runs MachineDeployments and MachineSets as stock does, and their
// reserve. Package plan decides about a MachineDeployment with its MachineSets, or a MachineSet
// without one.
//
// Watches: MachineDeployments, MachineSets and Machines; Nodes of the target cluster. Writes:
// MachineDeployments, MachineSets and Machines; a taint and annotations of Nodes in rollouts;
// events. Never: replicas that a user sets; what another object controls; the class name, labels
// and annotations of the template in Machines that exist.
//
// Laws:
//
//  1. Before it counts, a MachineSet adopts unowned machines that it selects and releases others;
//     so does a MachineDeployment with MachineSets.
//  2. It creates only what is missing, even if caches lag, and deletes nothing in the same plan.
//  3. It deletes surplus in the documented order, named machines, and failed ones that nothing
//     preserves, each only if unchanged since it was read.
//  4. Deleting a MachineSet deletes its machines first, and deleting a MachineDeployment its
//     MachineSets.
//  5. An invalid object reports that and is left alone. MachineSets of an invalid MachineDeployment
//     continue.
//  6. Whatever is late, fails or crashes, the end is the same, and at rest nothing is written.
//  7. All machines of a MachineDeployment end up in the MachineSet of its template, which is
//     created once.
//  8. A RollingUpdate stays within surge, leaving machines included, and maxUnavailable, unless
//     named or low-priority machines go. A Recreate never mixes templates.
//  9. With many more machines than replicas, it is frozen and creates none until enough have gone.
package machinedeployment
