// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the machine.sapcloud.io API of machine-controller-manager, the same on the
// wire, with the reserve in the spec and status of a MachineDeployment. It also defines Evenkeel's
// annotations and their grammar (see [ParseBounds] and [ParseExcess]). The other kinds are
// machine-controller-manager's own Go types.
//
// +groupName=machine.sapcloud.io
// +k8s:deepcopy-gen=package
package v1alpha1
