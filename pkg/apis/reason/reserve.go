// SPDX-License-Identifier: Apache-2.0

package reason

// Reasons of the condition ReserveReady.
const (
	Complete           = "Complete"
	AtMax              = "AtMax"
	ReplicasLowered    = "ReplicasLowered"
	AboveMax           = "AboveMax"
	Growing            = "Growing"
	NotReady           = "NotReady"
	Refilling          = "Refilling"
	Shrinking          = "Shrinking"
	RollingOut         = "RollingOut"
	AwaitingDeletion   = "AwaitingDeletion"
	SurplusServing     = "SurplusServing"
	Unhealthy          = "Unhealthy"
	CannotBeMade       = "CannotBeMade"
	Protected          = "Protected"
	RestoringReplicas  = "RestoringReplicas"
	BoundsInvalid      = "BoundsInvalid"
	AnnotationInvalid  = "AnnotationInvalid"
	CapacityUnknown    = "CapacityUnknown"
	ClusterUnreachable = "ClusterUnreachable"
	NotWanted          = "NotWanted"
	Draining           = "Draining"
	Preparing          = "Preparing"
	PreparationFailed  = "PreparationFailed"
)

const (
	seeWhatBoots = "check why machines do not boot: kubectl -n NAMESPACE describe machine"
	seeWhatHangs = "check which machines hang in Terminating: kubectl -n NAMESPACE get machines"
)

// ReserveReady explains the condition of that name.
var ReserveReady = Table{
	{Name: Complete, Status: True, Event: "ReserveHeld", Meaning: "The reserve has the desired size, and all its machines are ready."},
	{Name: ReplicasLowered, Status: True,
		Meaning: "A client reduced `spec.replicas`, which includes the reserve, below what workload and the desired reserve need, so the reserve takes the reduction. The message shows when it grows again. A reduction by Gardener counts as the maximum, and has no end of its own.",
		Remedy:  "if you want the whole reserve, raise `spec.replicas`, or keep GitOps tools from writing it; after a reduction by Gardener, correct the maximum in the bounds"},
	{Name: AtMax, Status: True, Meaning: "The reserve is complete, but smaller than requested, because max leaves no more room.",
		Remedy: "raise max if you want the whole excess"},
	{Name: AboveMax, Status: False, Meaning: "Replicas alone exceed max. Max limits the reserve and not replicas, so there is no reserve.",
		Remedy: "raise max in the bounds, or lower replicas"},
	{Name: Preparing, Status: False, Passing: true, Meaning: "The reserve is complete, but images are being pulled on some of its machines, or their Nodes lack a device that others of their MachineSet have. Machines are released all the same, prepared ones first.",
		Remedy: "see docs/prepared.md"},
	{Name: PreparationFailed, Status: False, Event: "PreparationFailed",
		Meaning: "The reserve is complete, but images cannot be pulled on some of its machines; the message shows the first reason. Machines are released all the same, prepared ones first.",
		Remedy:  "see docs/prepared.md#reasons"},
	{Name: Growing, Status: False, Passing: true, Meaning: "Machines are being created.", Remedy: seeWhatBoots},
	{Name: NotReady, Status: False, Passing: true, Meaning: "There are enough machines in reserve, but some of them are booting or unhealthy, or their Nodes wait for a startup taint to be removed.",
		Remedy: seeWhatBoots},
	{Name: Refilling, Status: False, Passing: true, Meaning: "Fewer machines serve than replicas require. Workload comes before the reserve (law 2).", Remedy: seeWhatBoots},
	{Name: Shrinking, Status: False, Passing: true, Meaning: "Some machines are being deleted, or wait until no pod runs there (law 6).", Remedy: seeWhatHangs},
	{Name: RollingOut, Status: False, Passing: true, Meaning: "The excess changes after the rollout.",
		Remedy: "check what holds up the rollout: kubectl -n NAMESPACE describe machinedeployment NAME"},
	{Name: AwaitingDeletion, Status: False, Passing: true, Meaning: "Machines that are being deleted still take up the room below max (law 8).", Remedy: seeWhatHangs},
	{Name: SurplusServing, Status: False, Passing: true,
		Meaning: "More machines than replicas serve, and none of them is empty, for example after a machine has recovered (law 5). The first one that becomes empty enters the reserve. After `--surplus-patience`, the emptiest machine whose pods may all be evicted now is drained. If there is no such machine, all stay, and the message names a pod and the reason.",
		Remedy:  "raise replicas to keep all machines; if the message names a pod that prevents a drain, end or annotate it, or change its PodDisruptionBudget"},
	{Name: Unhealthy, Status: False, Meaning: "Machines that are Unknown or Failed take up places in the reserve. A preserved machine keeps its place until the preservation expires.",
		Remedy: "repair these machines: kubectl -n NAMESPACE get machines"},
	{Name: CannotBeMade, Status: False, Event: "ReserveIncomplete",
		Meaning: "Machines could not be created, or did not become ready in time. The reserve continues without them, and the message shows the time of the next try: after 1, 2, 4 ... 60 minutes (law 10).",
		Remedy:  "check quota, capacity and the MachineClass, and the events of the provider: kubectl -n NAMESPACE describe machine"},
	{Name: Protected, Status: False, Meaning: "There are more machines than desired, because some are preserved or have a deletion priority above the default (law 6).",
		Remedy: "end the preservation, or remove the priority"},
	{Name: RestoringReplicas, Status: False, Passing: true,
		Meaning: "A client named a reserve machine for deletion and lowered replicas for it. Replicas are restored (law 3).",
		Remedy:  "find the autoscaler that does not know the reserve: docs/autoscaler.md"},
	{Name: BoundsInvalid, Status: False, Event: "BoundsInvalid", Meaning: "The bounds or the share are invalid, so the reserve stays as it is.",
		Remedy: "write bounds as min:max:excess, for example 1:10:2"},
	{Name: AnnotationInvalid, Status: False, Event: "AnnotationInvalid",
		Meaning: "The annotation `drain-reserve` is neither `\"true\"` nor `\"false\"`, or `accounting` is neither `Additive` nor `Inclusive`, so the reserve stays as it is.", Remedy: "use a value from the message, or remove the annotation"},
	{Name: CapacityUnknown, Status: False, Event: "ReserveIncomplete",
		Meaning: "The excess is given in resources, but the capacity of a machine is unknown, so the reserve stays as it is.",
		Remedy:  "give the MachineClass a nodeTemplate with that capacity, wait for a ready Node, or request a resource that the Nodes offer"},
	{Name: ClusterUnreachable, Status: Unknown, Event: "ClusterUnreachable",
		Meaning: "The API server of the target cluster has not answered for 30 seconds, or its watches have not caught up yet (law 7). No machine enters or leaves the reserve, and none is deleted except those that were never created. Machines are still created, and new ones serve while fewer machines than replicas serve.",
		Remedy:  "check the API server of the target cluster, the network to it and the kubeconfig"},
	{Name: NotWanted, Status: False, Passing: true, Meaning: "The reserve is no longer desired, but still exists.", Remedy: seeWhatHangs},
	{Name: Draining, Status: False, Passing: true,
		Meaning: "`--drain-reserve` is on, or the annotation `drain-reserve` of this MachineDeployment is `\"true\"`, so the reserve is removed.",
		Remedy:  seeWhatHangs + "; to keep the reserve, remove the flag or the annotation"},
}
