// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the autoscaling.x-k8s.io API: a CapacityBuffer keeps room for pods that do not
// exist yet.
//
// It is compatible with the CapacityBuffer of Kubernetes' autoscaling group: the same fields in the
// same form. Its CRD belongs to the cluster of the pods, where cluster-autoscaler or a cloud may
// have installed one.
//
// +groupName=autoscaling.x-k8s.io
// +groupGoName=CapacityBuffer
// +k8s:deepcopy-gen=package
package v1beta1
