// SPDX-License-Identifier: Apache-2.0

// Package booking books machines of the reserve for ProvisioningRequests.
//
//	ProvisioningRequests, PodTemplates --+
//	pods that use them, DaemonSets ------+-> plan.View -> plan.New -> one Reserve per MachineDeployment,
//	MachineDeployments, Nodes -----------+    (package fit packs pods)     status of ProvisioningRequests
//
// It requests no machines: it has machines that are ready in reserve dedicated to the pods of a
// request, by Reserves that ask for no more than that. See package reserves. Instant release then
// releases them for these pods alone.
//
// Watches: ProvisioningRequests, PodTemplates, pods, DaemonSets and Nodes of the target cluster;
// Reserves, MachineDeployments, MachineSets, Machines and MachineClasses of the control cluster.
//
// Writes: the Reserves that it has created, and the status of requests of the class
// reserved.evenkeel.dev.
//
// Never: a request of another class; a Reserve without its label; the spec of a request; a pod.
//
// Laws:
//
//  1. Machines are booked for all pods of a request, or for none. Only machines that are ready in
//     reserve are booked, and each for one request.
//  2. A request is provisioned once the MachineDeployments show that the machines are dedicated to it.
//     From then on, what is booked only becomes less: by the machines that run its pods.
//  3. Requests are served by age, and namespaces take turns. One that cannot be served holds nothing.
//  4. A booking ends after the time that the request sets, or if the request is deleted.
//  5. A request that cannot be served waits, unless its parameters say that it fails.
//  6. Nothing is remembered: each sync decides from the objects. At rest, nothing is written.
package booking
