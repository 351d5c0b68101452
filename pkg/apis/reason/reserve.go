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
		Meaning: "A client reduced `spec.replicas`, which includes the reserve, so the reserve shrank. The message shows when the controller tries to restore it. A reduction by Gardener counts as a new maximum instead, and lasts until `spec.replicas` or the bounds are raised.",
		Remedy:  "to restore the reserve now, raise `spec.replicas`, and keep GitOps tools from writing it; after a reduction by Gardener, correct the maximum in the bounds"},
	{Name: AtMax, Status: True, Meaning: "The reserve is complete, but max leaves no room for all of the requested machines.",
		Remedy: "raise max if you want the whole excess"},
	{Name: AboveMax, Status: False, Meaning: "Replicas alone exceed max, so there is no room for a reserve. Max does not limit replicas.",
		Remedy: "raise max in the bounds, or lower replicas"},
	{Name: Preparing, Status: False, Passing: true, Meaning: "The reserve is complete, but images are still being pulled on some of its machines, or a Node lacks a device that other Nodes of its MachineSet have. These machines can be released, too, but prepared ones go first.",
		Remedy: "see docs/prepared.md"},
	{Name: PreparationFailed, Status: False, Event: "PreparationFailed",
		Meaning: "The reserve is complete, but images cannot be pulled on some of its machines; the message shows the first reason. These machines can be released, too, but prepared ones go first.",
		Remedy:  "see docs/prepared.md#reasons"},
	{Name: Growing, Status: False, Passing: true, Meaning: "Machines are being created.", Remedy: seeWhatBoots},
	{Name: NotReady, Status: False, Passing: true, Meaning: "The reserve has enough machines, but some are booting or unhealthy, or their Nodes still have a startup taint.",
		Remedy: seeWhatBoots},
	{Name: Refilling, Status: False, Passing: true, Meaning: "Fewer machines serve than `spec.replicas` requires. New machines serve first, and the reserve grows after that.", Remedy: seeWhatBoots},
	{Name: Shrinking, Status: False, Passing: true, Meaning: "Surplus reserve machines are being deleted, or wait until no pod runs on them.", Remedy: seeWhatHangs},
	{Name: RollingOut, Status: False, Passing: true, Meaning: "A rollout is in progress, and the reserve has its size when it ends.",
		Remedy: "check what holds up the rollout: kubectl -n NAMESPACE describe machinedeployment NAME"},
	{Name: AwaitingDeletion, Status: False, Passing: true, Meaning: "Machines that are being deleted still count against max, so new ones wait for them.", Remedy: seeWhatHangs},
	{Name: SurplusServing, Status: False, Passing: true,
		Meaning: "More machines serve than `spec.replicas` requires, and none of them is empty, for example after a machine recovered. The first machine that becomes empty enters the reserve. After `--surplus-patience`, the emptiest machine whose pods can all be evicted is drained. If there is none, the message names a pod that cannot be evicted, and why.",
		Remedy:  "to keep all machines, raise replicas; if the message names a pod, delete or annotate it, or change its PodDisruptionBudget"},
	{Name: Unhealthy, Status: False, Meaning: "Machines in phase Unknown or Failed take places of the reserve. A preserved machine keeps its place until the preservation expires.",
		Remedy: "repair these machines: kubectl -n NAMESPACE get machines"},
	{Name: CannotBeMade, Status: False, Event: "ReserveIncomplete",
		Meaning: "Machines could not be created, or did not become ready in time. The reserve continues without them. The controller tries again after 1, 2, 4 and up to 60 minutes; the message shows when.",
		Remedy:  "check quota, capacity and the MachineClass, and the events of the provider: kubectl -n NAMESPACE describe machine"},
	{Name: Protected, Status: False, Meaning: "The reserve is larger than desired, because some machines are preserved or have a deletion priority above the default.",
		Remedy: "end the preservation, or remove the priority"},
	{Name: RestoringReplicas, Status: False, Passing: true,
		Meaning: "A client marked a reserve machine for deletion and lowered `spec.replicas` for it. The controller raises `spec.replicas` again.",
		Remedy:  "find the autoscaler that does not know the reserve: docs/autoscaler.md"},
	{Name: BoundsInvalid, Status: False, Event: "BoundsInvalid", Meaning: "The bounds or the share are invalid, so the reserve stays as it is.",
		Remedy: "write bounds as min:max:excess, for example 1:10:2"},
	{Name: AnnotationInvalid, Status: False, Event: "AnnotationInvalid",
		Meaning: "The annotation `drain-reserve` is neither `\"true\"` nor `\"false\"`, or `accounting` is neither `Additive` nor `Inclusive`, so the reserve stays as it is.", Remedy: "use a value from the message, or remove the annotation"},
	{Name: CapacityUnknown, Status: False, Event: "ReserveIncomplete",
		Meaning: "The excess is given in resources, but the capacity of a machine is unknown, so the reserve stays as it is.",
		Remedy:  "give the MachineClass a nodeTemplate with that capacity, wait for a ready Node, or request a resource that the Nodes offer"},
	{Name: ClusterUnreachable, Status: Unknown, Event: "ClusterUnreachable",
		Meaning: "The API server of the target cluster has not answered for 30 seconds, or its watches have not caught up yet. Until it does, no machine enters or leaves the reserve. Machines are deleted only if they have no instance at the provider yet, or if replicas are lowered. New machines are still created, and serve while too few machines do.",
		Remedy:  "check the API server of the target cluster, the network to it and the kubeconfig"},
	{Name: NotWanted, Status: False, Passing: true, Meaning: "No reserve is desired any more, but machines are still in it.", Remedy: seeWhatHangs},
	{Name: Draining, Status: False, Passing: true,
		Meaning: "`--drain-reserve` is on, or the annotation `drain-reserve` of this MachineDeployment is `\"true\"`, so the reserve is removed.",
		Remedy:  seeWhatHangs + "; to keep the reserve, remove the flag or the annotation"},
}
