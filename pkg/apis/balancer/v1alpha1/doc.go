// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the balancer.x-k8s.io API: a Balancer spreads a number of replicas over several workloads and
// can itself be scaled, by a person or by a HorizontalPodAutoscaler.
//
// On the wire it is the API of the Balancer of Kubernetes' autoscaling group, whose manifests apply unchanged and mean
// the same. What is added is optional.
//
// +groupName=balancer.x-k8s.io
// +k8s:deepcopy-gen=package
package v1alpha1
