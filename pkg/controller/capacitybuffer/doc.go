// SPDX-License-Identifier: Apache-2.0

// Package capacitybuffer keeps room for the chunks of CapacityBuffers on machines in reserve. It
// requests these by one Reserve for each MachineDeployment that holds chunks.
//
// Watches: the machine API, Reserves and CapacityBuffers; PodTemplates, workloads, ResourceQuotas,
// DaemonSets and Nodes of the target cluster. Writes: the Reserves that it has created, and the
// status of buffers with the strategy evenkeel.dev/reserved. Never: other buffers; the spec of a
// buffer; a Reserve without its label; a pod or a PodTemplate.
//
// Laws:
//
//  1. A chunk is one pod of the PodTemplate or workload that the buffer refers to, or the newest
//     pod of another kind that scales. A limit without a request counts as the request.
//  2. The number of chunks is the larger of replicas and percentage, rounded up, within limits;
//     without both, all that limits allow.
//  3. ResourceQuotas are divided among the buffers of a namespace, oldest first.
//  4. All chunks are packed together, on as few reserve machines as possible, then on the smallest.
//  5. A MachineDeployment holds chunks only with bounds and known machine capacity; while either is
//     invalid or temporarily unknown, its request stays. While a buffer's objects cannot be read,
//     its machines stay.
//  6. Machines stay where they are while no packing is better, and ready ones until their
//     replacement is ready.
//  7. While a MachineDeployment cannot create machines, others stand in, and it keeps one machine
//     for the next try.
//  8. A buffer affects others only by the room that it takes, and the work of a sync is bounded.
//  9. Each sync decides from the objects; only recent free room is remembered, and at rest nothing
//     is written.
//  10. A Reserve of this controller that no buffer needs is deleted.
//  11. Chunks of buffers with the same owners share machines dedicated to these owners, which hold
//     no other chunks, and are packed first.
//  12. If a buffer asks for it, the Reserves where its chunks are also request the images of its
//     pods.
//  13. A buffer that fills once holds only unused chunks: each of its pods uses one when it is
//     bound, and none come back.
//  14. With the annotation free-room and no dedicated machines, chunks that fit on serving machines
//     need no reserve machine, and no room counts twice. Taken room is replaced at once; freed room
//     counts minutes later.
package capacitybuffer
