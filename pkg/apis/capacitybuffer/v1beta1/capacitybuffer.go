// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// StrategyReserved is the provisioning strategy of the buffers that Evenkeel serves: room on
	// machines of a reserve.
	StrategyReserved = "evenkeel.dev/reserved"
	// StrategyActive is the default strategy. It belongs to cluster-autoscaler.
	StrategyActive = "buffer.x-k8s.io/active-capacity"
)

const (
	// RefillRecreate is the default refill strategy: the room that pods take is replaced.
	RefillRecreate = "recreate"
	// RefillNone is the refill strategy of a buffer that fills once: the room that pods take is not
	// replaced.
	RefillNone = "none"
)

// PoolAnnotation, on a CapacityBuffer, names the pool that holds all its chunks: a
// MachineDeployment, or a Gardener worker pool. Without it, every pool whose machines a chunk fits
// can hold some.
const PoolAnnotation = "evenkeel.machine.sapcloud.io/pool"

// DedicatedAnnotation, on a CapacityBuffer, names the pods that alone may use its machines,
// separated by commas: "workload" (the pods of scalableRef), "namespace" (all pods of the buffer's
// namespace), "namespace/ci" (those of another one). Without it, all pods may.
const DedicatedAnnotation = "evenkeel.machine.sapcloud.io/dedicated"

// PrepareAnnotation, on a CapacityBuffer, has the images of its pods pulled on the machines of the
// MachineDeployments that hold its chunks. Its value is "true".
const PrepareAnnotation = "evenkeel.machine.sapcloud.io/prepare"

// FreeRoomAnnotation, on a CapacityBuffer, lets chunks use the free room on machines that serve. Its
// value is "true". Without it, all chunks have room on machines in reserve.
const FreeRoomAnnotation = "evenkeel.machine.sapcloud.io/free-room"

// ReserveLabel marks the Reserves that the controller of CapacityBuffers creates.
const ReserveLabel = "autoscaling.evenkeel.dev/capacity-buffers"

// Types of conditions.
const (
	// ConditionReadyForProvisioning reports whether the shape and the number of chunks are known.
	ConditionReadyForProvisioning = "ReadyForProvisioning"
	// ConditionProvisioning reports whether there is room for all chunks on machines that are ready,
	// with the reasons that other programs read.
	ConditionProvisioning = "Provisioning"
	// ConditionReady reports whether there is room for all chunks on machines that are ready.
	ConditionReady = "Ready"
	// ConditionLimitedByQuotas reports whether ResourceQuotas of the namespace leave room for fewer
	// chunks than requested.
	ConditionLimitedByQuotas = "LimitedByQuotas"
	// ConditionFulfilled reports that pods have used all chunks of a buffer that fills once, and
	// ConditionExpired that they have not within its deadline. Both are terminal: the buffer holds
	// nothing any longer. At most one of them is there.
	ConditionFulfilled = "Fulfilled"
	ConditionExpired   = "Expired"
)

// CapacityBuffer keeps room for a number of pods that do not exist yet, called chunks. All chunks
// of a buffer have the same shape.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=cb
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.provisioningStrategy`,description="Who provisions the buffer, and how."
// +kubebuilder:printcolumn:name="Chunks",type=integer,JSONPath=`.status.replicas`,description="Chunks that the buffer asks room for."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether there is room for all chunks now."
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready, or not."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created."
type CapacityBuffer struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the shape of a chunk, and how many there are.
	Spec CapacityBufferSpec `json:"spec"`

	// Status is the most recently observed state.
	// +optional
	Status CapacityBufferStatus `json:"status,omitempty"`
}

// CapacityBufferSpec is the shape of a chunk, and how many there are.
//
// +kubebuilder:validation:XValidation:rule="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",message="the number of chunks is missing: with podTemplateRef, set replicas or limits"
// +kubebuilder:validation:XValidation:rule="!(has(self.podTemplateRef) && has(self.scalableRef))",message="set either podTemplateRef or scalableRef"
// +kubebuilder:validation:XValidation:rule="!has(self.fillDeadlineSeconds) || has(self.refillStrategy) && self.refillStrategy == 'none'",message="fillDeadlineSeconds needs refillStrategy none"
type CapacityBufferSpec struct {
	// ProvisioningStrategy selects who provisions the buffer, and how. "evenkeel.dev/reserved" keeps
	// reserve machines for it. The default is that of cluster-autoscaler.
	// +optional
	// +kubebuilder:default="buffer.x-k8s.io/active-capacity"
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`

	// PodTemplateRef names a PodTemplate in the namespace of the buffer, whose pod is one chunk. Set
	// exactly one of podTemplateRef and scalableRef.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`

	// ScalableRef names a workload in the namespace of the buffer, for example a Deployment, whose pod
	// is one chunk.
	// +optional
	ScalableRef *ScalableRef `json:"scalableRef,omitempty"`

	// Replicas is a number of chunks. If percentage is set, too, the larger one counts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Percentage is the number of chunks in percent of the replicas of scalableRef, rounded up.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Percentage *int32 `json:"percentage,omitempty"`

	// Limits are the most resources that all chunks together can request. Without replicas and
	// percentage, there are as many chunks as fit.
	// +optional
	Limits ResourceList `json:"limits,omitempty"`

	// RefillStrategy is what happens to room that pods have taken: "recreate" (the default) replaces
	// it; "none" does not, so that the buffer fills once, with replicas chunks. Experimental: this
	// field may change or be removed.
	// +optional
	// +kubebuilder:validation:Enum=recreate;none
	RefillStrategy *string `json:"refillStrategy,omitempty"`

	// FillDeadlineSeconds is how long a buffer that fills once holds unused room, from when
	// ReadyForProvisioning becomes True. If unset, there is no limit. Experimental, like
	// refillStrategy.
	// +optional
	// +kubebuilder:validation:Minimum=1
	FillDeadlineSeconds *int64 `json:"fillDeadlineSeconds,omitempty"`
}

// ResourceName is the name of a resource, as in a pod's requests.
type ResourceName string

// ResourceList is an amount of each of some resources.
type ResourceList map[ResourceName]resource.Quantity

// UnmarshalJSON leaves out all amounts if one of them cannot be read. The schema accepts a few
// texts that are no quantities, such as 1e1.5, and an error would keep all buffers from being read.
func (l *ResourceList) UnmarshalJSON(text []byte) error {
	var amounts map[ResourceName]resource.Quantity
	if err := json.Unmarshal(text, &amounts); err != nil {
		amounts = map[ResourceName]resource.Quantity{}
	}
	*l = amounts
	return nil
}

// LocalObjectRef names an object of the same namespace.
type LocalObjectRef struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ScalableRef names a workload of the same namespace.
type ScalableRef struct {
	// APIGroup of the workload; empty for the core group.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind of the workload, for example Deployment.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`

	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// CapacityBufferStatus is the most recently observed state of a CapacityBuffer.
type CapacityBufferStatus struct {
	// PodTemplateRef names the PodTemplate that was used. Not set if the shape is that of a workload.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`

	// Replicas is the number of chunks that the buffer asks room for. If it fills once, this includes
	// those that pods have used.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ConsumedReplicas is how many chunks of a buffer that fills once pods have used. It never falls.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsumedReplicas *int32 `json:"consumedReplicas,omitempty"`

	// PodTemplateGeneration is the generation of the PodTemplate that was used.
	// +optional
	PodTemplateGeneration *int64 `json:"podTemplateGeneration,omitempty"`

	// Conditions are ReadyForProvisioning, Provisioning, Ready and LimitedByQuotas; at the end of a
	// buffer that fills once, also Fulfilled or Expired.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ProvisioningStrategy is the strategy by which the buffer is provisioned.
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
}

// CapacityBufferList is a list of CapacityBuffers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type CapacityBufferList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items is the list of CapacityBuffers.
	Items []CapacityBuffer `json:"items"`
}
