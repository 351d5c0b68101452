// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the autoscaling.x-k8s.io API of CapacityBuffers, which keep room for pods that
// do not exist yet. It is compatible with Kubernetes' autoscaling group. Its CRD belongs to the
// cluster of the pods, where something else may have installed one.
//
// +groupName=autoscaling.x-k8s.io
// +groupGoName=CapacityBuffer
// +k8s:deepcopy-gen=package
package v1beta1
