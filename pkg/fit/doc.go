// SPDX-License-Identifier: Apache-2.0

// Package fit decides whether a pod could run on a node, as Kubernetes' scheduler would, and packs
// waiting pods onto as few machines as it can. docs/release.md lists what counts.
//
// [On] considers a node as if it were empty. A [Room] has all nodes with their pods: [Room.Ask]
// considers what is left of it, and [Pack] fills it and then opens machines of a reserve. The
// answer is [Undecided] if the rules do not decide, or a pod exceeds the limits of [Slim]; see
// [Pod.Unclear].
//
//	packing := fit.Pack(fit.NewRoom(nodes), waiting, groups)
//
// Laws:
//
//	sound       a pod that [Fits] a node breaks none of the rules there
//	complete    an obstacle alone keeps the scheduler from choosing the node
//	undone      [Room.Put] and then [Room.Remove] leave a room that gives the same answers and devices
//	packed      every pod of a packing has one place that fits; the others fit nowhere that may be opened
//	lean        a machine is opened only for pods that fit nothing open, and none without a pod
//	frugal      of one group, no more machines are opened than first-fit-decreasing opens
//	bounded     no group opens more machines than its limit
//	order-free  the order of nodes and pods decides only ties
//	together    if fewer pods have a place than must have one, none has, and the room is as it was
//	affordable  the work of a packing is limited by [MaxWork]
//	total       no input causes a panic or an endless loop
package fit
