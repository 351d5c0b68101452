// SPDX-License-Identifier: Apache-2.0

package reason

// Reasons of the conditions of a CapacityBuffer, beside those that it has in common with other kinds.
const (
	// AttributesSetSuccessfully is the reason that cluster-autoscaler gives, too.
	AttributesSetSuccessfully = "AttributesSetSuccessfully"
	ReferenceInvalid          = "ReferenceInvalid"
	PodTemplateNotFound       = "PodTemplateNotFound"
	WorkloadNotFound          = "WorkloadNotFound"
	KindNotSupported          = "KindNotSupported"
	NumberMissing             = "NumberMissing"
	LimitsDoNotMatch          = "LimitsDoNotMatch"
	ShapeUnclear              = "ShapeUnclear"
	TooManyBuffers            = "TooManyBuffers"
	DedicationInvalid         = "DedicationInvalid"
	RightMissing              = "RightMissing"
	WorkloadUnread            = "WorkloadUnread"
	PodNotFound               = "PodNotFound"
	RefillNotEnabled          = "RefillNotEnabled"
	RefillInvalid             = "RefillInvalid"
	FreeRoomInvalid           = "FreeRoomInvalid"

	// These are the reasons of Provisioning that Kueue reads.
	FitsExistingCapacity    = "FitsExistingCapacity"
	RequiresNewCapacity     = "RequiresNewCapacity"
	NotReadyForProvisioning = "NotReadyForProvisioning"
	BufferEmpty             = "BufferEmpty"

	PoolNotFound = "PoolNotFound"
	DoesNotFit   = "DoesNotFit"
	NoChunks     = "NoChunks"
	LimitReached = "LimitReached"

	// ResourceQuotasAllocated is the reason that cluster-autoscaler gives, too.
	ResourceQuotasAllocated = "ResourceQuotasAllocated"
	NotLimited              = "NotLimited"

	// BufferFilled and FillDeadlineExceeded are how a buffer that fills once ends.
	BufferFilled         = "BufferFilled"
	FillDeadlineExceeded = "FillDeadlineExceeded"
)

// unprovided are the reasons for which chunks have no machine.
var unprovided = Table{
	{Name: NoRoom, Status: False, Meaning: "Bounds leave no room for the machines that all chunks need.", Remedy: "raise max in the bounds of a MachineDeployment, or ask for fewer chunks"},
	{Name: CannotBeMade, Status: False, Meaning: "Machines cannot be created in a MachineDeployment, and the others have no room to replace them.",
		Remedy: "see the condition ReserveReady of the MachineDeployments that the message names"},
	{Name: NoPools, Status: False, Meaning: "No MachineDeployment can hold chunks: one needs bounds with a maximum, and a MachineClass with a nodeTemplate or a ready Node.",
		Remedy: "set the annotation `evenkeel.machine.sapcloud.io/bounds` on a MachineDeployment"},
	{Name: PoolNotFound, Status: False, Meaning: "No MachineDeployment and no worker pool with the name in the annotation `evenkeel.machine.sapcloud.io/pool` can hold chunks.", Remedy: "correct the annotation"},
	{Name: DoesNotFit, Status: False, Meaning: "A chunk fits no empty machine, because of its requests, its node selector, its affinity or its tolerations.",
		Remedy: "change the pod template, or add a MachineDeployment whose machines a chunk fits"},
	{Name: LimitReached, Status: False, Meaning: "There are more chunks than Evenkeel places on machines; see docs/spec/capacitybuffer.md#limits.", Remedy: "ask for fewer chunks"},
	notReady,
}

var expired = Reason{Name: FillDeadlineExceeded, Status: False, Meaning: "Pods did not use all chunks of a buffer that fills once before its deadline. The buffer no longer holds room.", Remedy: "delete the buffer, and create it again if you need the room"}

var notReady = Reason{Name: NotReadyForProvisioning, Status: False, Meaning: "The shape or the number of chunks is not known.", Remedy: "see the condition ReadyForProvisioning"}

// CapacityBuffer explains the conditions of a CapacityBuffer with the strategy evenkeel.dev/reserved.
var CapacityBuffer = Conditions{
	"ReadyForProvisioning": {
		{Name: AttributesSetSuccessfully, Status: True, Meaning: "The shape and the number of chunks are known."},
		{Name: ReferenceInvalid, Status: False, Meaning: "The buffer has no reference, or two.", Remedy: "set either `spec.podTemplateRef` or `spec.scalableRef`"},
		{Name: PodTemplateNotFound, Status: False, Meaning: "The PodTemplate does not exist in the namespace of the buffer.", Remedy: "create it, or correct `spec.podTemplateRef`"},
		{Name: WorkloadNotFound, Status: False, Meaning: "The workload does not exist in the namespace of the buffer, or has ended.", Remedy: "create it, or correct `spec.scalableRef`"},
		{Name: RightMissing, Status: False, Meaning: "The controller is not allowed to read what the buffer needs: workloads, PodTemplates or ResourceQuotas. Meanwhile, the machines of the buffer stay.",
			Remedy: "add the rule that the message names to the ClusterRole `evenkeel-capacitybuffer-target`"},
		{Name: KindNotSupported, Status: False, Meaning: "The cluster does not serve a kind of this name and group.", Remedy: "correct `spec.scalableRef`, or use `spec.podTemplateRef` and `spec.replicas`"},
		{Name: PodNotFound, Status: False, Meaning: "Evenkeel does not know the template of this kind of workload, and the workload has no pod that shows it.", Remedy: "start a pod of it, or use `spec.podTemplateRef` and `spec.replicas`"},
		{Name: WorkloadUnread, Status: False, Meaning: "The scale of the workload has not been read yet, or cannot be read. Meanwhile, the machines of the buffer stay.", Remedy: "wait; if it lasts, see the message"},
		{Name: NumberMissing, Status: False, Meaning: "The buffer does not specify the number of chunks.", Remedy: "set `spec.replicas`, `spec.percentage` or `spec.limits`"},
		{Name: LimitsDoNotMatch, Status: False, Meaning: "`spec.limits` names no resource that a chunk requests.", Remedy: "limit a resource that the pod template requests"},
		{Name: ShapeUnclear, Status: False, Meaning: "Evenkeel cannot decide where a pod of this shape can run.", Remedy: "change what the message names in the pod template"},
		{Name: TooManyBuffers, Status: False, Meaning: "There are more buffers, or more owners of dedicated machines, than Evenkeel serves.", Remedy: "delete buffers"},
		{Name: DedicationInvalid, Status: False, Meaning: "The annotation `evenkeel.machine.sapcloud.io/dedicated` cannot be read.", Remedy: "correct the annotation"},
		{Name: FreeRoomInvalid, Status: False, Meaning: "The annotation `evenkeel.machine.sapcloud.io/free-room` cannot be read, or the machines are dedicated.", Remedy: "correct the annotation, or remove one of the two"},
		{Name: RefillNotEnabled, Status: False, Meaning: "The manager does not serve buffers with `refillStrategy: none`.", Remedy: "start it with `--capacity-buffer-fill-once`, or remove `spec.refillStrategy`"},
		{Name: RefillInvalid, Status: False, Meaning: "The refill strategy is unknown, or does not go with the other fields.", Remedy: "see the message"},
	},
	"Provisioning": {
		{Name: FitsExistingCapacity, Status: True, Meaning: "There is room for all chunks on machines that are ready."},
		{Name: RequiresNewCapacity, Status: False, Passing: true, Meaning: "Machines are being created, or there is no room for all chunks.", Remedy: "see the condition Ready"},
		notReady,
		{Name: BufferEmpty, Status: False, Meaning: "The buffer has no chunks now: it asks for none, quotas leave no room for one, or it fills once and has ended.", Remedy: "ask for chunks, if you need some"},
	},
	"Ready": append(Table{
		{Name: Complete, Status: True, Meaning: "There is room for all chunks on machines that are ready."},
		{Name: Growing, Status: False, Passing: true, Meaning: "Machines are being created.", Remedy: "see the Reserves whose names begin with capacity-buffers"},
		{Name: NoChunks, Status: True, Meaning: "The buffer has no chunks now: it asks for none, or quotas leave no room for one."},
		{Name: BufferFilled, Status: True, Meaning: "Pods have used all chunks of a buffer that fills once. The buffer no longer holds room."},
		expired,
	}, unprovided...),
	"Fulfilled": {
		{Name: BufferFilled, Status: True, Meaning: "Pods have used all chunks of a buffer that fills once. The buffer no longer holds room."},
	},
	"Expired": {
		{Name: FillDeadlineExceeded, Status: True, Meaning: expired.Meaning, Remedy: expired.Remedy},
	},
	"LimitedByQuotas": {
		{Name: NotLimited, Status: False, Meaning: "ResourceQuotas leave room for all chunks."},
		{Name: ResourceQuotasAllocated, Status: True, Meaning: "ResourceQuotas of the namespace leave room for fewer chunks. `status.replicas` is what they leave.",
			Remedy: "raise the quotas, or ask for fewer chunks"},
	},
}
