// SPDX-License-Identifier: Apache-2.0

// Package capacitybuffer keeps room for the chunks of CapacityBuffers on machines in reserve, by
// one Reserve for each MachineDeployment that holds chunks.
//
// Watches: the machine API, Reserves and CapacityBuffers; PodTemplates, workloads, pods,
// ResourceQuotas, DaemonSets and Nodes of the target cluster. Writes: its own Reserves, and the
// status of buffers with the strategy evenkeel.dev/reserved. Never: other buffers or Reserves; the
// spec of a buffer; a pod or a PodTemplate.
//
// Laws:
//
//  1. A chunk is one pod of the buffer's PodTemplate or workload, or the newest pod of another kind
//     that scales. Limits count as missing requests.
//  2. The number of chunks is the larger of replicas and percentage, rounded up, within limits;
//     without both, all that limits allow.
//  3. ResourceQuotas are divided among the buffers of a namespace, oldest first.
//  4. All chunks are packed together, on as few reserve machines as possible, then on the smallest.
//  5. Only MachineDeployments with bounds and known capacity hold chunks. While these are invalid
//     or unknown, or a buffer's objects cannot be read, machines stay.
//  6. Machines stay while no packing is better, and ready ones until their replacement is ready.
//  7. While a MachineDeployment cannot create machines, others take over, and it keeps trying one.
//  8. A buffer affects others only by the room that it takes, and the work of a sync is bounded.
//  9. A sync decides from the objects and recent free room only, and at rest nothing is written.
//  10. A Reserve of this controller that no buffer needs is deleted.
//  11. Chunks of buffers with the same owners are packed first, on machines dedicated to these
//     owners, which hold no other chunks.
//  12. If a buffer asks for it, the Reserves of its chunks also request its pods' images.
//  13. In a buffer that fills once, each of its pods uses up one chunk for good when it is bound.
//  14. With free-room, and unless machines are dedicated, chunks can use serving machines. Taken
//     room is replaced at once; freed room counts minutes later.
package capacitybuffer
