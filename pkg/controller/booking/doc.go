// SPDX-License-Identifier: Apache-2.0

// Package booking books machines of the reserve for ProvisioningRequests: by Reserves, it dedicates
// ready machines to the pods of a request, and instant release releases them for these alone.
//
// Watches: the machine API, Reserves and ProvisioningRequests; PodTemplates, pods, DaemonSets and
// Nodes of the target cluster. Writes: its own Reserves, and the status of requests of the class
// reserved.evenkeel.dev. Never: other requests or Reserves; the spec of a request; a pod.
//
// Laws:
//
//  1. Machines are booked for all pods of a request or for none, only while ready in reserve, each
//     for one request.
//  2. A request is provisioned once its machines are dedicated. Then bookings fall only by machines
//     that run its pods.
//  3. Requests are served by age, and namespaces take turns. One that cannot be served holds
//     nothing.
//  4. A booking ends after the time that the request sets, or when the request is deleted.
//  5. A request that cannot be served waits, or fails if its parameters ask for that.
//  6. Each sync decides from the objects only, and at rest nothing is written.
package booking
