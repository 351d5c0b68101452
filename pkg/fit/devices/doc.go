// SPDX-License-Identifier: Apache-2.0

// Package devices decides about claims to devices (dynamic resource allocation, resource.k8s.io/v1)
// for package fit, with the allocator of the scheduler of Kubernetes 1.36 with its default
// features. It does not know taints of DeviceTaintRules.
//
// [Inventory.Claimed] returns an error for a pod that requests an extended resource of a
// DeviceClass, or has a claim that
//
//   - is missing, is being deleted, belongs to another pod, or is of a missing class or template
//   - is shared with other waiting pods, and not allocated
//   - has admin access, requests a part of a device's capacity, or has an unknown part
//   - waits for conditions of its devices, or is reserved for the most pods allowed
//   - exceeds [MaxRequests] or another limit
//
// The answer for a node is undecided if the allocator
//
//   - chooses a device of more than that node, that claims share, that has binding conditions, that
//     takes the node's own resources, or that shares counters with devices of other nodes
//   - finds too few devices while a driver is replacing the slices of a pool
//   - returns an error, or needs more work than [MaxWork]
package devices
