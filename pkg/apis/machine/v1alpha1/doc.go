// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the machine.sapcloud.io API as Evenkeel serves it.
//
// It is machine-controller-manager's API, the same on the wire, with two additions: a
// MachineDeployment has spec.excessReplicas, the number of machines to keep in reserve, and its
// status contains the number of machines in reserve. Machine, MachineSet and MachineClass are
// machine-controller-manager's own Go types, under their own names.
//
// The package also defines Evenkeel's annotations, and the grammar of those that users write (see
// [ParseBounds] and [ParseExcess]). They are part of the API, like the fields.
//
// +groupName=machine.sapcloud.io
// +k8s:deepcopy-gen=package
package v1alpha1
