// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineDeployment keeps spec.replicas machines for workload and spec.excessReplicas more in
// reserve, and replaces them in a rolling or in-place update when its template changes.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName="mcd"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of ready machines, including those in reserve."
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Desired number of machines for workload."
// +kubebuilder:printcolumn:name="Excess",type=integer,JSONPath=`.spec.excessReplicas`,description="Desired number of machines in reserve, beyond those for workload."
// +kubebuilder:printcolumn:name="Reserve",type=integer,JSONPath=`.status.readyExcessReplicas`,description="Number of reserve machines that are ready for workload.",priority=1
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`,description="Number of machines with the current template."
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of machines ready for at least minReadySeconds."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the MachineDeployment was created."
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Specification of the desired behavior of the MachineDeployment.
	// +optional
	Spec MachineDeploymentSpec `json:"spec,omitempty"`

	// Most recently observed status of the MachineDeployment.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// MachineDeploymentSpec is the spec of machine-controller-manager, with the excess.
type MachineDeploymentSpec struct {
	StockMachineDeploymentSpec `json:",inline"`

	// Number of machines to keep in reserve beyond spec.replicas: ready and empty, with a NoSchedule
	// taint until workload needs them. When replicas is raised, a reserve machine takes workload at
	// once, and a new one replaces it. Minimum 0. If 0 or unset, the MachineDeployment has no reserve
	// of its own. A write that removes reserveWitness, too, comes from a client that knows neither
	// field, and both are restored. If the annotation evenkeel.machine.sapcloud.io/bounds sets a
	// maximum, the excess is reduced so that replicas and excess do not exceed it. If bounds or a pool
	// define the excess, this field shows the result.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be 0 or more: the number of machines in reserve, beyond replicas; 0 means none"
	ExcessReplicas *int32 `json:"excessReplicas,omitempty"`

	// Written by Evenkeel while excessReplicas is above 0; do not write it. It shows which clients
	// know excessReplicas: a write that removes only excessReplicas means 0, and one that removes both
	// is undone.
	// +optional
	ReserveWitness bool `json:"reserveWitness,omitempty"`
}

// MachineDeploymentStatus is the status of machine-controller-manager, with the reserve.
type MachineDeploymentStatus struct {
	StockMachineDeploymentStatus `json:",inline"`

	// Number of machines in reserve, including those that are not ready yet.
	// +optional
	ExcessReplicas int32 `json:"excessReplicas,omitempty"`

	// Number of reserve machines that workload can use at once.
	// +optional
	ReadyExcessReplicas int32 `json:"readyExcessReplicas,omitempty"`

	// Selector of the machines for the scale subresource, which HorizontalPodAutoscaler requires. Set
	// with the first reserve, and kept.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// MachineDeploymentList is a list of MachineDeployments.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items is the list of MachineDeployments.
	Items []MachineDeployment `json:"items"`
}
