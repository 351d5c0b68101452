// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the autoscaling.x-k8s.io API of CapacityBuffers, which keep room for pods that
// do not exist yet. It is compatible with Kubernetes' autoscaling group. Something else may have
// installed its CRD in the cluster of the pods.
//
// +groupName=autoscaling.x-k8s.io
// +groupGoName=CapacityBuffer
// +k8s:deepcopy-gen=package
package v1beta1
