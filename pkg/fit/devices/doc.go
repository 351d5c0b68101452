// SPDX-License-Identifier: Apache-2.0

// Package devices decides about claims to devices (dynamic resource allocation, resource.k8s.io/v1)
// for package fit, with the scheduler's own allocator.
//
// An [Inventory] is made from what the API server lists: slices, classes, claims and templates.
// [Inventory.Claimed] reads the claims of a waiting pod. The result chooses devices on a node, beside
// those that are taken, or says that there are too few.
//
// A claim that is allocated already keeps the pod on the nodes where its devices can be used. A claim
// that will be made from a template is read from the template. Devices of allocated claims are taken,
// whichever pods use them. A machine that boots offers what another one does; see [Like].
//
// The answers are those of a scheduler of Kubernetes 1.36 with its default features. Taints that
// DeviceTaintRules add to devices are not known.
//
// # What is left alone
//
// [Inventory.Claimed] returns an error for a pod with a claim that
//
//   - is missing, is being deleted, belongs to another pod, or is of a missing class or template
//   - is not allocated, and is shared with other waiting pods
//   - has admin access, requests a part of a device's capacity, or has a part that is not known here
//   - waits for conditions of its devices, or is reserved for as many pods as can be
//   - exceeds a limit: see [MaxRequests] and the other limits
//
// and for a pod that requests an extended resource that devices of a class provide.
//
// On a node, the answer is undecided if the allocator
//
//   - chooses a device that is not of that node alone, that several claims can share, that has binding
//     conditions, that takes part of the node's own resources, or that shares counters with devices of
//     other nodes
//   - finds too few devices while a driver is replacing the slices of a pool
//   - returns an error, as for a selector that reads an attribute that a device does not have
//   - needs more work than [MaxWork]
//
// # Counts
//
// [Selectors.Count] returns how many devices of a class a node has, for a reserve that is requested in
// devices. It needs no claims, and looks only at the slices of one node. Not counted are devices that are
// not of that node alone, that have taints with an effect, that several claims can share, or that are
// parts of others. If a driver is replacing the slices of one of its pools, the number is not known.
//
// The package keeps no state, reads no clock and logs nothing. Only [Selectors] remember something:
// what they compiled.
package devices
