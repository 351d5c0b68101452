// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FederatedHorizontalPodAutoscalerStatus is what is known of the clusters, and what was promised to them.
type FederatedHorizontalPodAutoscalerStatus struct {
	// ObservedGeneration is the generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// CurrentReplicas over all clusters, as last seen.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas is what the clusters' own autoscalers ask for, as last seen.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`

	// ReadyReplicas over all clusters, where the workload says so.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// MinReplicas is the sum of the clusters' minima, as last confirmed by them.
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the sum of the clusters' maxima, as last confirmed by them.
	// +optional
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// CountedReplicas is the highest that the clusters' maxima can add up to at this moment, with all that is under way.
	// +optional
	CountedReplicas int32 `json:"countedReplicas,omitempty"`

	// Clusters that are selected, or that something was promised to.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterStatus `json:"clusters,omitempty"`

	// Conditions are Ready, Balanced, Limited, ClustersUnreachable, OverCommitted, MinExceeded and JoiningBlocked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The conditions.
const (
	// ConditionReady is true while the hub manages all selected clusters.
	ConditionReady = "Ready"
	// ConditionBalanced is true while all clusters have their desired bounds.
	ConditionBalanced = "Balanced"
	// ConditionLimited is true while clusters ask for more than there is, and says how many more.
	ConditionLimited = "Limited"
	// ConditionClustersUnreachable is true while a cluster with a share is out of reach.
	ConditionClustersUnreachable = "ClustersUnreachable"
	// ConditionOverCommitted is true while the share of a cluster out of reach is lent, and says how much.
	ConditionOverCommitted = "OverCommitted"
	// ConditionMinExceeded is true while the minima add up to more than minReplicas.
	ConditionMinExceeded = "MinExceeded"
	// ConditionJoiningBlocked is true while a cluster waits for a share.
	ConditionJoiningBlocked = "JoiningBlocked"
)

// ClusterState is what a cluster is to this object.
type ClusterState string

// The states of a cluster.
const (
	// Idle clusters are selected and not used.
	Idle ClusterState = "Idle"
	// Joining clusters are about to get an autoscaler.
	StateJoining ClusterState = "Joining"
	// Waiting clusters are to be used, and nothing is left for them.
	Waiting ClusterState = "Waiting"
	// Used clusters have an autoscaler of ours.
	Used ClusterState = "Used"
	// Frozen clusters are used, and their autoscaler does not work: its bounds stay.
	Frozen ClusterState = "Frozen"
	// Refused clusters cannot be used: see reason and message.
	Refused ClusterState = "Refused"
	// Leaving clusters lose their autoscaler.
	Leaving ClusterState = "Leaving"
	// StateUnreachable clusters are not touched.
	StateUnreachable ClusterState = "Unreachable"
)

// ClusterStatus is about one cluster.
type ClusterStatus struct {
	// Name of the cluster.
	Name string `json:"name"`

	// State is one of Idle, Joining, Waiting, Used, Frozen, Refused, Leaving, Unreachable.
	// +optional
	State ClusterState `json:"state,omitempty"`

	// MinReplicas is what the cluster's minimum is meant to be.
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is what the cluster's maximum is meant to be.
	// +optional
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// ConfirmedMinReplicas is the minimum that was last seen in the cluster.
	// +optional
	ConfirmedMinReplicas int32 `json:"confirmedMinReplicas,omitempty"`

	// ConfirmedMaxReplicas is the maximum that was last seen in the cluster.
	// +optional
	ConfirmedMaxReplicas int32 `json:"confirmedMaxReplicas,omitempty"`

	// ConfirmedVersion is the resourceVersion of the cluster's autoscaler at which the confirmed bounds were first seen. A
	// controller that has not seen that version yet writes nothing to the cluster.
	// +optional
	ConfirmedVersion string `json:"confirmedVersion,omitempty"`

	// Outstanding is what was sent to the cluster, or is about to be, and may or may not have arrived.
	// +optional
	Outstanding *Outstanding `json:"outstanding,omitempty"`

	// Epoch counts what was sent.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`

	// CurrentReplicas, as the cluster's autoscaler last said.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas, as the cluster's autoscaler last said.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`

	// ReadyReplicas, as the workload last said.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Demand is how many replicas the cluster's metrics call for, while it asks for more than its maximum.
	// +optional
	Demand int32 `json:"demand,omitempty"`

	// LimitedBy is Max, Min or Rate, if the cluster's autoscaler says that it is limited.
	// +optional
	LimitedBy LimitedBy `json:"limitedBy,omitempty"`

	// OnDemand says that the cluster has joined because others were at their limits.
	// +optional
	OnDemand bool `json:"onDemand,omitempty"`

	// MovedAt is when its bounds were last changed.
	// +optional
	MovedAt *metav1.Time `json:"movedAt,omitempty"`

	// RemovableAfter is until when a creation that got no answer could still arrive: the autoscaler is not removed before.
	// +optional
	RemovableAfter *metav1.Time `json:"removableAfter,omitempty"`

	// NotReadySince is since when replicas have been missing that were asked for.
	// +optional
	NotReadySince *metav1.Time `json:"notReadySince,omitempty"`

	// QuietSince is since when others could do without this cluster.
	// +optional
	QuietSince *metav1.Time `json:"quietSince,omitempty"`

	// UnreachableSince is when the cluster was last heard of, while it is out of reach.
	// +optional
	UnreachableSince *metav1.Time `json:"unreachableSince,omitempty"`

	// Reason says in one word why the cluster is in this state, where that is not plain.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says it in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// LimitedBy is what keeps a cluster's autoscaler from the number it wants.
type LimitedBy string

// The limits.
const (
	ByMax  LimitedBy = "Max"
	ByMin  LimitedBy = "Min"
	ByRate LimitedBy = "Rate"
)

// Outstanding bounds count until it is certain what became of them: a maximum as if it had been raised, a minimum as if it
// had been lowered.
type Outstanding struct {
	// MinReplicas is the lowest minimum that may arrive.
	MinReplicas int32 `json:"minReplicas"`

	// MaxReplicas is the highest maximum that may arrive.
	MaxReplicas int32 `json:"maxReplicas"`

	// Base is the resourceVersion that the cluster's autoscaler must have for the bounds to arrive, empty where it must not
	// exist. Any later version makes sure that they will not.
	// +optional
	Base string `json:"base,omitempty"`

	// Repeated says that something was sent before on the same base, so that a refusal of the last does not settle it.
	// +optional
	Repeated bool `json:"repeated,omitempty"`
}
