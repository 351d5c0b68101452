// SPDX-License-Identifier: Apache-2.0

// Package capacitybuffer keeps room for the chunks of CapacityBuffers on machines in reserve.
//
//	CapacityBuffers ------------+
//	PodTemplates, workloads ----+-> plan.View -> plan.New -> one Reserve per MachineDeployment, status of CapacityBuffers
//	ResourceQuotas, DaemonSets -+    (package fit packs chunks onto machines)
//	MachineDeployments, Nodes --+
//
// It only requests machines: for each MachineDeployment that holds chunks there is a Reserve. If
// other Reserves, or the excess of the MachineDeployment itself, request more there, that counts.
// See package reserves.
//
// Watches: CapacityBuffers, PodTemplates, ResourceQuotas, DaemonSets, Nodes and workloads of the
// target cluster; Reserves, MachineDeployments, MachineSets, Machines and MachineClasses of the
// control cluster.
//
// Writes: the Reserves that it has created, and the status of buffers with the strategy
// evenkeel.dev/reserved.
//
// Never: a buffer of another strategy; a Reserve without its label; the spec of a buffer; a pod or a
// PodTemplate.
//
// Laws:
//
//  1. A chunk is one pod of the PodTemplate, or of the workload, that the buffer refers to. If the
//     workload is of an unknown kind with a scale subresource, a chunk is like its newest pod. A
//     resource that has a limit and no request requests its limit.
//  2. The number of chunks is the larger of replicas and percentage, which is rounded up, and at most
//     as many as limits allow. Without both, it is as many as limits allow.
//  3. ResourceQuotas of a namespace are divided among its buffers, the oldest first.
//  4. The chunks of all buffers are packed together: as many as there is room for, on as few machines
//     as possible, and then on the smallest. Chunks add up. Only machines in reserve count, but
//     for law 14.
//  5. A MachineDeployment holds chunks only if it has bounds, and if it is known what its machines
//     offer. If either is invalid or temporarily unknown, its request stays as it is. While the
//     objects that a buffer needs cannot be read, the machines for its chunks stay.
//  6. Machines stay where they are while no packing is better. No ready machine is given up before its
//     replacement is ready.
//  7. While machines cannot be created in one MachineDeployment, others stand in, and it keeps one
//     machine for the next try.
//  8. The content of one buffer affects no other, except by the room that it takes. The work of a sync
//     is bounded, however many buffers and chunks there are.
//  9. Nothing is remembered: each sync decides from the objects, and from the status of a buffer
//     that fills once. Only how much room was free in the last minutes is remembered. At rest, nothing
//     is written.
//  10. A Reserve of this controller that no buffer needs is deleted.
//  11. Chunks of buffers with the same owners share machines that are dedicated to these owners, and
//     no other chunks use them. They are packed before those that all pods may use.
//  12. Where the chunks of a buffer are that asks for it, Reserves ask for the images of its pods as
//     well. See package preparation.
//  13. A buffer that fills once holds the chunks that have not been used. A pod that it is for uses
//     one as it is bound, and uses no chunk of another buffer. What has been used never becomes less,
//     and when all is used, or the deadline has passed, the buffer holds nothing any longer, whatever
//     happens to it or to pods. Without Options.FillOnce, it holds nothing.
//  14. Chunks of a buffer with the annotation free-room that fit on machines that serve need no
//     machine in reserve. No room counts twice. Room that pods take is replaced at once, and room
//     that they leave counts five to ten minutes later. Dedicated machines exclude this.
package capacitybuffer
