// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the balancer.x-k8s.io API: a Balancer distributes a number of replicas over
// several workloads, and can itself be scaled, by a user or by a HorizontalPodAutoscaler.
//
// It is compatible with the Balancer of Kubernetes' autoscaling group, whose manifests apply
// unchanged and mean the same. All additions are optional.
//
// +groupName=balancer.x-k8s.io
// +k8s:deepcopy-gen=package
package v1alpha1
