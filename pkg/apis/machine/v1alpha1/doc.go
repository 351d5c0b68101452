// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the machine.sapcloud.io API as Evenkeel serves it.
//
// It is machine-controller-manager's API, the same on the wire, with two additions: a MachineDeployment has
// spec.excessReplicas, the number of machines wanted beyond need, and its status says how many machines are in
// reserve. Machine, MachineSet and MachineClass are machine-controller-manager's own Go types, under their own names.
//
// What Evenkeel keeps in annotations, and the grammar of those a user writes (see [ParseBounds] and [ParseExcess]),
// is here too: it is as much API as the fields are.
//
// +groupName=machine.sapcloud.io
// +k8s:deepcopy-gen=package
package v1alpha1
