// SPDX-License-Identifier: Apache-2.0

// Package v1 is the autoscaling.x-k8s.io API of ProvisioningRequests: a ProvisioningRequest asks for
// machines for all pods of a job at once.
//
// It is compatible with the ProvisioningRequest of Kubernetes' autoscaling group: the same fields in
// the same form. Its CRD belongs to the cluster of the pods, where cluster-autoscaler or a cloud may
// have installed one.
//
// +groupName=autoscaling.x-k8s.io
// +groupGoName=ProvisioningRequest
// +k8s:deepcopy-gen=package
package v1
