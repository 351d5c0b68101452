// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the balancer.x-k8s.io API: a Balancer distributes a number of replicas over
// several workloads, and can itself be scaled. It is compatible with Kubernetes' autoscaling group;
// all additions are optional.
//
// +groupName=balancer.x-k8s.io
// +k8s:deepcopy-gen=package
package v1alpha1
