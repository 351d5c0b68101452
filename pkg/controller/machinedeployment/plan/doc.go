// SPDX-License-Identifier: Apache-2.0

// Package plan decides what to adopt, release, change, create and delete of MachineDeployments,
// their MachineSets and machines, and their status. It is pure, and its laws are those of package
// machinedeployment.
package plan
