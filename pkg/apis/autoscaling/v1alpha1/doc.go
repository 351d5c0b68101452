// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the autoscaling.evenkeel.dev API: a FederatedHorizontalPodAutoscaler
// partitions the minimum and the maximum of one autoscaler over the HorizontalPodAutoscalers of
// many clusters, and a Reserve keeps spare machines in MachineDeployments, by a number that
// autoscalers can scale and by schedules.
//
// +groupName=autoscaling.evenkeel.dev
// +k8s:deepcopy-gen=package
package v1alpha1
