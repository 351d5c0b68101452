// SPDX-License-Identifier: Apache-2.0

// Package capacitybuffer keeps room for the chunks of CapacityBuffers on machines in reserve.
//
//	CapacityBuffers ------------+
//	PodTemplates, workloads ----+-> View -> NewPlan -> one Reserve per MachineDeployment, status of CapacityBuffers
//	ResourceQuotas, DaemonSets -+    (package fit packs chunks onto machines)
//	MachineDeployments, Nodes --+
//
// It asks, and that is all: for each MachineDeployment that holds chunks there is a Reserve, and what a Reserve asks for competes with
// other Reserves, and with the excess of the MachineDeployment itself, by the larger. See package reserves.
//
// Watches: CapacityBuffers, PodTemplates, ResourceQuotas, DaemonSets, Nodes and workloads of the target cluster; Reserves,
// MachineDeployments, MachineSets, Machines and MachineClasses of the control cluster.
//
// Writes: the Reserves that it has created, and the status of buffers with the strategy evenkeel.dev/reserved.
//
// Never: a buffer of another strategy, a Reserve without its label, the spec of a buffer, a pod or a PodTemplate.
//
// Laws:
//
//  1. A chunk is one pod of the PodTemplate, or of the workload, that the buffer refers to. Of a workload with a scale subresource whose
//     kind is not known, it is like the newest pod. What has a limit and no request requests its
//     limit.
//  2. There are as many chunks as the larger of replicas and percentage, which is rounded up; at most as many as limits hold, and as many
//     as these hold where there is neither.
//  3. ResourceQuotas of a namespace are shared out to its buffers, the oldest first.
//  4. The chunks of all buffers are packed together: as many as there is room for, then on as few machines as are found, then on the
//     smallest. Chunks add up. Only machines in reserve count, not the room on machines that serve.
//  5. A MachineDeployment holds chunks only if bounds limit it, and if it is known what its machines are like. Where either is invalid or
//     unknown for a while, it keeps what it was asked for. While what a buffer needs cannot be read, as many machines stay as it had chunks.
//  6. Machines stay where they are as long as no packing is better. No ready machine goes before those that replace it are ready.
//  7. While machines cannot be created in one MachineDeployment, others stand in, and it keeps one for the next try.
//  8. What one buffer says affects no other, but for the room that it takes. However many buffers and chunks there are, the work of a
//     look is bounded.
//  9. Nothing is remembered: each look decides from the objects. At rest nothing is written.
//  10. A Reserve of this controller that no buffer needs is deleted.
//  11. Chunks of buffers with the same owners share machines that are dedicated to these owners, and no others do. They are packed before
//     those that all pods may use.
package capacitybuffer
