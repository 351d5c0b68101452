// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the autoscaling.evenkeel.dev API: a FederatedHorizontalPodAutoscaler
// partitions the bounds of one autoscaler over many clusters, and a Reserve keeps spare machines.
//
// +groupName=autoscaling.evenkeel.dev
// +k8s:deepcopy-gen=package
package v1alpha1
