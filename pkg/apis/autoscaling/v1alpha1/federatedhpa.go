// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FederatedHorizontalPodAutoscaler is one autoscaler for a workload that runs in several clusters. It lives in a hub. In
// each of the clusters that it uses there is a HorizontalPodAutoscaler of the same namespace and name, which scales there
// by what it measures there, also while the hub or the link to it is down. The hub only partitions minReplicas and
// maxReplicas, and shifts them to where they are needed.
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

	// Most recently observed status, and the memory of what was promised to whom.
	// +optional
	Status FederatedHorizontalPodAutoscalerStatus `json:"status,omitempty"`
}

// FederatedHorizontalPodAutoscalerSpec says what to scale, between which bounds, and in which clusters.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="self.minReplicas >= 1 || self.minPolicy == 'AllowZero'",message="minReplicas of 0 needs minPolicy AllowZero"
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.template) || self.placement.template.apiVersion == self.scaleTargetRef.apiVersion && self.placement.template.kind == self.scaleTargetRef.kind && has(self.placement.template.metadata.name) && self.placement.template.metadata.name == self.scaleTargetRef.name",message="placement.template must have the apiVersion, kind and name of scaleTargetRef"
type FederatedHorizontalPodAutoscalerSpec struct {
	// ScaleTargetRef points to the workload, in each cluster in the namespace of this object. Where it does not exist the
	// cluster's autoscaler waits for it.
	ScaleTargetRef ScaleTargetReference `json:"scaleTargetRef"`

	// MinReplicas is the minimum over all clusters. With minPolicy Strict no more clusters are used than this number.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the maximum over all clusters: the maxima of their autoscalers never add up to more, also not for a
	// moment and not while clusters are out of reach, unless unreachable.policy says so. When it is lowered, what runs
	// beyond it is taken back as fast as the clusters confirm.
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics are those of a HorizontalPodAutoscaler (autoscaling/v2), and are given to each cluster unchanged. Targets per
	// pod mean the same everywhere. A metric of type Object or External is read in each cluster by itself: one queue that
	// all clusters read would be served by all of them at once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Metrics []runtime.RawExtension `json:"metrics,omitempty"`

	// Behavior is that of a HorizontalPodAutoscaler (autoscaling/v2), and is given to each cluster unchanged. Policies of
	// type Pods hold per cluster.
	// +optional
	Behavior *runtime.RawExtension `json:"behavior,omitempty"`

	// ClusterSelector chooses among the clusters that the hub knows, by their labels. Not set means all.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Clusters are preferences for single clusters. The name * stands for all that are not named. A preference does not
	// select a cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Clusters []ClusterPreference `json:"clusters,omitempty"`

	// MinPolicy says how many clusters are used. Strict, which is the default: as many as minReplicas allows with one
	// replica in each. AtLeastOne: all, each with a minimum of 1, though that may add up to more than minReplicas. AllowZero:
	// all, with minima of 0 where minReplicas does not reach; it needs metrics of type Object or External and clusters that
	// allow scaling to zero.
	// +optional
	// +kubebuilder:default=Strict
	MinPolicy MinPolicy `json:"minPolicy,omitempty"`

	// Joining lets a cluster that is not used join while all used ones are at their limits.
	// +optional
	Joining *Joining `json:"joining,omitempty"`

	// Rebalance says how the bounds move between clusters.
	// +optional
	Rebalance *Rebalance `json:"rebalance,omitempty"`

	// Unreachable says what becomes of the share of a cluster that cannot be reached. Not set means that it is held.
	// +optional
	Unreachable *Unreachable `json:"unreachable,omitempty"`

	// Placement says whether the workload is created and removed along with the cluster's autoscaler. Not set means that
	// somebody else does that.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// DeletionPolicy says what becomes of what was made in the clusters when this object is deleted. Delete, which is the
	// default, removes it, and waits for clusters that are out of reach. Orphan leaves it all as it is.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Adopt takes over a HorizontalPodAutoscaler of the same name that somebody else made. Otherwise the cluster that has it
	// is not used.
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// Paused stops writing to clusters; status goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ScaleTargetReference points to a workload with a scale subresource.
type ScaleTargetReference struct {
	// APIVersion of the workload, as in apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`

	// Kind of the workload, as in Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ClusterPreference is what is wished for one cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
type ClusterPreference struct {
	// Name of the cluster, or * for all that are not named.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// MinReplicas is what the cluster's minimum is at least, if the cluster is used.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is what the cluster's maximum is at most. Not set means that only the maximum over all clusters limits it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// Weight is the cluster's share of what is to spare, and of what is short, among its tier. Not set means 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// Tier says when the cluster's turn comes: lower ones are used first and get first. Not set means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Tier int32 `json:"tier,omitempty"`
}

// MinPolicy says how many clusters are used.
//
// +kubebuilder:validation:Enum=Strict;AtLeastOne;AllowZero
type MinPolicy string

// The policies for minima.
const (
	Strict     MinPolicy = "Strict"
	AtLeastOne MinPolicy = "AtLeastOne"
	AllowZero  MinPolicy = "AllowZero"
)

// DeletionPolicy says what becomes of the clusters' autoscalers.
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
