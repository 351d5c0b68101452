// SPDX-License-Identifier: Apache-2.0

// Package v1 is the autoscaling.x-k8s.io API of ProvisioningRequests, which request machines for
// all pods of a job at once. It is compatible with Kubernetes' autoscaling group. Something else
// may have installed its CRD in the cluster of the pods.
//
// +groupName=autoscaling.x-k8s.io
// +groupGoName=ProvisioningRequest
// +k8s:deepcopy-gen=package
package v1
