// SPDX-License-Identifier: Apache-2.0

// Package fit decides whether a pod could run on a node, as Kubernetes' scheduler would, and packs pods that wait onto as
// few machines as it can.
//
// [NewPod] reads a pod once. [On] asks about a node as if it were empty: could the pod run on machines of this kind, in
// this zone, at all? A [Room] knows all nodes with their pods: [Room.Ask] answers for the room that is left, and [Pack]
// fills it and opens machines of a reserve, one after the other, for what is left over.
//
//	room := fit.NewRoom(nodes)
//	packing := fit.Pack(room, waiting, groups)
//
// What is looked at: requests of every resource, extended ones too, and the number of pods; host ports; node selector and
// required node affinity; taints and tolerations; the topology of volumes that are bound, or that will be made where the
// pod goes; required pod affinity and anti-affinity, also that of pods that run already; hard topology spread.
//
// What cannot be told from these is not guessed: such a pod is [Undecided] wherever it is asked for, and [Pod.Unclear]
// says why. Preferences are the scheduler's business: they move pods among nodes that fit.
//
// # Laws
//
// The tests cite them by name.
//
//	sound       where the answer is [Fits], the pod breaks no rule above on that node with what is there
//	complete    where it is an obstacle, that obstacle alone is enough to keep the scheduler from it
//	undone      [Room.Put] and then [Room.Remove] leave a room that gives the same answers
//	packed      every pod of a packing has one place that fits; what is left over fits nowhere that may be opened
//	lean        a machine is opened only for pods that nothing open holds, and no open one is without a pod
//	frugal      of one group, no more machines are opened than first-fit-decreasing opens
//	bounded     no group opens more machines than it may
//	order-free  the order in which nodes and pods are given decides nothing but ties
//	affordable  the work of a packing is bounded, by a constant and by the room there is, whatever waits
//	total       no input panics or runs for ever, be it malformed
//
// What a user of the cluster writes into pods may be as large as the API server takes. [Slim] is what is kept of a pod, and
// names the bounds; a pod that passes one is [Undecided]. [Pack] takes pods that are yet to be created as a number, and spends
// its work evenly on namespaces, see [MaxWork].
//
// The package keeps no state, reads no clock and logs nothing.
package fit
