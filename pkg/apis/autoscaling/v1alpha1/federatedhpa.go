// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FederatedHorizontalPodAutoscaler is one autoscaler for a workload that runs in several clusters.
// It is stored in a hub. Each used cluster has a HorizontalPodAutoscaler of the same namespace and
// name, which scales by the metrics of that cluster, even while the hub is down. The hub only
// distributes minReplicas and maxReplicas to the clusters that need them.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=fhpa
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.scaleTargetRef.name`,description="Workload that is scaled."
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minReplicas`,description="Minimum over all clusters."
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxReplicas`,description="Maximum over all clusters."
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.currentReplicas`,description="Replicas over all clusters."
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`,description="Replicas that the clusters' own autoscalers request."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the hub manages all selected clusters."
// +kubebuilder:printcolumn:name="Limited",type=string,JSONPath=`.status.conditions[?(@.type=="Limited")].status`,description="Whether clusters request more than maxReplicas allows."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created."
type FederatedHorizontalPodAutoscaler struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Specification of the desired behavior.
	Spec FederatedHorizontalPodAutoscalerSpec `json:"spec"`

	// Most recently observed status, and the record of what was promised to each cluster.
	// +optional
	Status FederatedHorizontalPodAutoscalerStatus `json:"status,omitempty"`
}

// FederatedHorizontalPodAutoscalerSpec defines what to scale, between which bounds, and in which
// clusters.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="self.minReplicas >= 1 || self.minPolicy == 'AllowZero'",message="minReplicas of 0 needs minPolicy AllowZero"
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.template) || self.placement.template.apiVersion == self.scaleTargetRef.apiVersion && self.placement.template.kind == self.scaleTargetRef.kind && has(self.placement.template.metadata.name) && self.placement.template.metadata.name == self.scaleTargetRef.name",message="placement.template must have the apiVersion, kind and name of scaleTargetRef"
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.template) || !has(oldSelf.placement) || !has(oldSelf.placement.template) || self.scaleTargetRef == oldSelf.scaleTargetRef",message="scaleTargetRef cannot change while placement.template is set, because the workloads that were created would stay: create another object, or remove placement first and delete these workloads"
type FederatedHorizontalPodAutoscalerSpec struct {
	// ScaleTargetRef is the workload, in the same namespace of each cluster. If it does not exist
	// there, the cluster's autoscaler waits for it.
	ScaleTargetRef ScaleTargetReference `json:"scaleTargetRef"`

	// MinReplicas is the minimum over all clusters. With minPolicy Strict, no more clusters than
	// this number are used.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the maximum over all clusters. The maximums of their autoscalers never add up to
	// more, even while clusters are unreachable, unless unreachable.policy allows it. When it is
	// lowered, replicas beyond it are removed as fast as the clusters confirm.
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics are those of a HorizontalPodAutoscaler (autoscaling/v2), copied to each cluster
	// unchanged. Each cluster reads metrics of type Object or External by itself: if all clusters read
	// the same queue, each of them scales for the whole queue.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Metrics []runtime.RawExtension `json:"metrics,omitempty"`

	// Behavior is that of a HorizontalPodAutoscaler (autoscaling/v2), copied to each cluster
	// unchanged. Policies of type Pods apply per cluster.
	// +optional
	Behavior *runtime.RawExtension `json:"behavior,omitempty"`

	// ClusterSelector selects registered clusters by their labels. If unset, all are selected.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Clusters are preferences for individual clusters. The name * applies to all clusters that are
	// not listed. A preference does not select a cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Clusters []ClusterPreference `json:"clusters,omitempty"`

	// MinPolicy defines how many clusters are used. Strict (the default): as many as minReplicas
	// allows with one replica in each. AtLeastOne: all, each with a minimum of 1, even if these exceed
	// minReplicas. AllowZero: all, with a minimum of 0 where minReplicas is not sufficient; this
	// requires metrics of type Object or External, and clusters that allow scaling to zero.
	// +optional
	// +kubebuilder:default=Strict
	MinPolicy MinPolicy `json:"minPolicy,omitempty"`

	// Joining lets an unused cluster join while all used ones are at their limits.
	// +optional
	Joining *Joining `json:"joining,omitempty"`

	// Rebalance defines how bounds move between clusters.
	// +optional
	Rebalance *Rebalance `json:"rebalance,omitempty"`

	// Unreachable defines what happens to the share of an unreachable cluster. If unset, the cluster
	// keeps its share.
	// +optional
	Unreachable *Unreachable `json:"unreachable,omitempty"`

	// Placement defines whether the workload is created and deleted together with the cluster's
	// autoscaler. If unset, the workload is managed elsewhere.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// LeavePolicy defines what happens to the workload in a cluster that leaves, because it is no
	// longer selected or fewer clusters are used. Keep (the default): it keeps its replicas.
	// ScaleToZero: it gets 0 replicas, and 1 when the cluster is used again. Delete: it is deleted if
	// the hub created it, and kept otherwise. Replicas that stay run without an autoscaler and count
	// against maxReplicas.
	// +optional
	// +kubebuilder:default=Keep
	LeavePolicy LeavePolicy `json:"leavePolicy,omitempty"`

	// DeletionPolicy defines what happens to the objects in the clusters when this object is deleted.
	// Delete (the default) deletes them, and waits for unreachable clusters. Orphan leaves them
	// unchanged.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Adopt takes over existing HorizontalPodAutoscalers of the same name that other clients created.
	// Otherwise, clusters with one are not used.
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// Paused stops all writes to clusters. The status is still updated.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ScaleTargetReference identifies a workload with a scale subresource.
type ScaleTargetReference struct {
	// APIVersion of the workload, for example apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`

	// Kind of the workload, for example Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ClusterPreference contains the settings for one cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
type ClusterPreference struct {
	// Name of the cluster, or * for all clusters that are not listed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// MinReplicas is the lower limit of the cluster's minimum, if the cluster is used.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the upper limit of the cluster's maximum. If unset, only the maximum over all
	// clusters limits it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// Weight is the relative size of the cluster's share in its tier. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// Tier is the order in which clusters are used: lower tiers are used first, and get replicas
	// first. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Tier int32 `json:"tier,omitempty"`
}

// MinPolicy defines how many clusters are used.
//
// +kubebuilder:validation:Enum=Strict;AtLeastOne;AllowZero
type MinPolicy string

// The policies for minima.
const (
	Strict     MinPolicy = "Strict"
	AtLeastOne MinPolicy = "AtLeastOne"
	AllowZero  MinPolicy = "AllowZero"
)

// LeavePolicy defines what happens to the workload in a cluster that leaves.
//
// +kubebuilder:validation:Enum=Keep;ScaleToZero;Delete
type LeavePolicy string

// The policies for workloads in clusters that leave.
const (
	LeaveKeep        LeavePolicy = "Keep"
	LeaveScaleToZero LeavePolicy = "ScaleToZero"
	LeaveDelete      LeavePolicy = "Delete"
)

// DeletionPolicy defines what happens to the clusters' autoscalers.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

// The policies for deletion.
const (
	Delete DeletionPolicy = "Delete"
	Orphan DeletionPolicy = "Orphan"
)

// FederatedHorizontalPodAutoscalerList is a list of FederatedHorizontalPodAutoscalers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type FederatedHorizontalPodAutoscalerList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items is the list of FederatedHorizontalPodAutoscalers.
	Items []FederatedHorizontalPodAutoscaler `json:"items"`
}
