// SPDX-License-Identifier: Apache-2.0

// Package plan decides about MachineDeployments, their MachineSets and machines: what to adopt and to
// release, to change, to create and to delete, and what the status says. The laws are those of package
// machinedeployment.
//
// It is pure: it has no client, no clock and no logger. The order of the objects in a View does not
// matter.
package plan
