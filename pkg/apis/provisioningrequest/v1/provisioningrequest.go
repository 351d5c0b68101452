// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClassReserved is the provisioning class of the requests that Evenkeel serves: machines are booked
// from the reserve, for all pods or for none.
const ClassReserved = "reserved.evenkeel.dev"

// Parameters of requests of the class [ClassReserved].
const (
	// NoRetryParameter has a request fail that cannot be served at once. Its value is "true".
	NoRetryParameter = "noRetry"
	// ValidUntilParameter is how many seconds after its creation a request fails that has not been served.
	ValidUntilParameter = "ValidUntilSeconds"
	// BookingParameter is for how many seconds machines are booked.
	BookingParameter = "BookingSeconds"
)

// Annotations of pods that use what was provisioned. The second is an older form.
const (
	ConsumeAnnotation    = "autoscaling.x-k8s.io/consume-provisioning-request"
	OldConsumeAnnotation = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
)

// Types of conditions.
const (
	// ConditionAccepted reports that somebody serves the request.
	ConditionAccepted = "Accepted"
	// ConditionProvisioned reports whether there are machines for all pods.
	ConditionProvisioned = "Provisioned"
	// ConditionFailed reports that there will be no machines for the request.
	ConditionFailed = "Failed"
	// ConditionBookingExpired reports that the machines are no longer kept for the request.
	ConditionBookingExpired = "BookingExpired"
)

// ProvisioningRequest asks for machines for a number of pods that do not exist yet.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=provreq;provreqs
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.provisioningClassName`,description="Who provisions machines, and how."
// +kubebuilder:printcolumn:name="Provisioned",type=string,JSONPath=`.status.conditions[?(@.type=="Provisioned")].status`,description="Whether there are machines for all pods."
// +kubebuilder:printcolumn:name="Failed",type=string,JSONPath=`.status.conditions[?(@.type=="Failed")].status`,description="Whether there will be none."
// +kubebuilder:printcolumn:name="Expired",type=string,JSONPath=`.status.conditions[?(@.type=="BookingExpired")].status`,description="Whether machines are no longer kept for it."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created."
type ProvisioningRequest struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is for which pods machines are requested, and how they are provisioned. It cannot be
	// changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec cannot be changed"
	Spec ProvisioningRequestSpec `json:"spec"`

	// Status is the most recently observed state.
	// +optional
	Status ProvisioningRequestStatus `json:"status,omitempty"`
}

// ProvisioningRequestSpec is for which pods machines are requested, and how they are provisioned.
type ProvisioningRequestSpec struct {
	// PodSets are the pods.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	PodSets []PodSet `json:"podSets"`

	// ProvisioningClassName is who provisions machines, and how. "reserved.evenkeel.dev" books them from
	// the reserve.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ProvisioningClassName string `json:"provisioningClassName"`

	// Parameters of the provisioning class.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Parameters map[string]Parameter `json:"parameters,omitempty"`
}

// PodSet is a number of equal pods.
type PodSet struct {
	// PodTemplateRef names a PodTemplate in the namespace of the request.
	PodTemplateRef Reference `json:"podTemplateRef"`

	// Count is how many pods of this template there are.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16384
	Count int32 `json:"count"`
}

// Reference names an object of the same namespace.
type Reference struct {
	// Name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Parameter is the value of a parameter.
//
// +kubebuilder:validation:MaxLength=255
type Parameter string

// Detail is the value of a detail.
//
// +kubebuilder:validation:MaxLength=32768
type Detail string

// ProvisioningRequestStatus is the most recently observed state of a ProvisioningRequest.
type ProvisioningRequestStatus struct {
	// Conditions are Accepted, Provisioned, Failed, BookingExpired and those of other classes.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ProvisioningClassDetails are written by who serves the request.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	ProvisioningClassDetails map[string]Detail `json:"provisioningClassDetails,omitempty"`
}

// ProvisioningRequestList is a list of ProvisioningRequests.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ProvisioningRequestList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items is the list of ProvisioningRequests.
	Items []ProvisioningRequest `json:"items"`
}
