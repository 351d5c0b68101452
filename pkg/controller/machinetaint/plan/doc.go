// SPDX-License-Identifier: Apache-2.0

// Package plan decides what to write for the reserve of one MachineDeployment: to its Machines and
// their Nodes, to the MachineDeployment itself, and to its status. [New] decides from a [View] of
// plain values: the time, the objects, what machine-controller-manager has seen of them, and the
// [Memory] of the last plan. It reads which reserve is desired, who owns spec.excessReplicas, and
// where the reserve is counted; package reserve decides which machines serve. The package is pure:
// it has no clock and no client, it writes nothing, and the same View gives the same [Plan].
//
// The laws that comments cite are those of the controller.
package plan
