// SPDX-License-Identifier: Apache-2.0

// Package fit decides whether a pod could run on a node, as Kubernetes' scheduler would, and packs
// waiting pods onto as few machines as it can.
//
// [NewPod] reads a pod once. [On] considers a node as if it were empty: could the pod run at all on
// machines of this kind, in this zone? A [Room] contains all nodes with their pods: [Room.Ask]
// considers the room that is left, and [Pack] fills it and then opens machines of a reserve, one
// after the other, for the remaining pods.
//
//	room := fit.NewRoom(nodes)
//	packing := fit.Pack(room, waiting, groups)
//
// These count: requests of every resource, including extended ones, and the number of pods; host
// ports; node selector and required node affinity; taints and tolerations; the topology of volumes
// that are bound, or that will be created where the pod runs; required pod affinity and
// anti-affinity, including those of running pods; hard topology spread; and claims to devices, if
// [Lookups.Devices] knows them, see package devices.
//
// If these do not decide the matter, the package does not guess: the pod is [Undecided] on every
// node, and [Pod.Unclear] says why. Preferences do not count: they only affect which of the fitting
// nodes the scheduler chooses.
//
// # Laws
//
// The tests cite them by name.
//
//	sound       if the answer is [Fits], the pod breaks none of these rules on that node, with the pods that are there
//	complete    if the answer is an obstacle, that obstacle alone keeps the scheduler from choosing the node
//	undone      [Room.Put] and then [Room.Remove] leave a room that gives the same answers, and the same devices
//	packed      every pod of a packing has one place that fits; the others fit nowhere that may be opened
//	lean        a machine is opened only for pods that fit nothing open, and every opened machine has a pod
//	frugal      of one group, no more machines are opened than first-fit-decreasing opens, by largest part, CPU or memory
//	bounded     no group opens more machines than its limit
//	order-free  the order of nodes and pods in the input decides only ties
//	together    if fewer pods have a place than must have one, none has, and the room is as it was
//	affordable  the work of a packing is limited, by a constant and by the room there is, whatever waits
//	total       no input, even a malformed one, causes a panic or an endless loop
//
// Users of the cluster can write pods as large as the API server accepts. [Slim] defines what is
// kept of a pod, and the limits; a pod beyond a limit is [Undecided]. [Pack] takes pods that will
// be created as a number, and divides its work evenly among namespaces; see [MaxWork].
//
// The package keeps no state, reads no clock and logs nothing.
package fit
