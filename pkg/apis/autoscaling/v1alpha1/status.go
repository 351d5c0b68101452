// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FederatedHorizontalPodAutoscalerStatus is the observed state of the clusters, and the record of
// what was promised to them.
type FederatedHorizontalPodAutoscalerStatus struct {
	// ObservedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// CurrentReplicas over all clusters, as last seen.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas is the sum of the replicas that the clusters' autoscalers request, as last seen.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`

	// ReadyReplicas over all clusters, if the workload reports them.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// MinReplicas is the sum of the clusters' confirmed minimums.
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the sum of the clusters' confirmed maximums.
	// +optional
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// CountedReplicas is the highest possible sum now of the clusters' maximums, with all outstanding
	// requests, and of replicas that run in clusters that have left.
	// +optional
	CountedReplicas int32 `json:"countedReplicas,omitempty"`

	// Clusters that are selected, or that still have a share.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterStatus `json:"clusters,omitempty"`

	// Conditions are Ready, Balanced, Limited, ClustersUnreachable, OverCommitted, MinExceeded,
	// JoiningBlocked and ReplicasLeft.
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
	// ConditionLimited is true while clusters ask for more than maxReplicas allows. Its message
	// contains the difference.
	ConditionLimited = "Limited"
	// ConditionClustersUnreachable is true while a cluster with a share is out of reach.
	ConditionClustersUnreachable = "ClustersUnreachable"
	// ConditionOverCommitted is true while the share of a cluster out of reach is lent. Its message
	// contains how much.
	ConditionOverCommitted = "OverCommitted"
	// ConditionMinExceeded is true while the minima add up to more than minReplicas.
	ConditionMinExceeded = "MinExceeded"
	// ConditionJoiningBlocked is true while a cluster waits for a share.
	ConditionJoiningBlocked = "JoiningBlocked"
	// ConditionReplicasLeft is true while replicas run without an autoscaler in clusters that have
	// left, and stay there.
	ConditionReplicasLeft = "ReplicasLeft"
)

// ClusterState is the state of a cluster for this object.
type ClusterState string

// The states of a cluster.
const (
	// Idle clusters are selected, but not used.
	Idle ClusterState = "Idle"
	// Joining clusters are about to get an autoscaler.
	StateJoining ClusterState = "Joining"
	// Waiting clusters are to be used, but no share is left for them.
	Waiting ClusterState = "Waiting"
	// Used clusters have an autoscaler that this object manages.
	Used ClusterState = "Used"
	// Frozen clusters are used, but their autoscaler does not work: its bounds do not change.
	Frozen ClusterState = "Frozen"
	// Refused clusters cannot be used: see reason and message.
	Refused ClusterState = "Refused"
	// Leaving clusters lose their autoscaler, and their workload if leavePolicy requires that.
	Leaving ClusterState = "Leaving"
	// StateLeft clusters have lost their autoscaler, and their workload continues to run.
	StateLeft ClusterState = "Left"
	// StateUnreachable clusters are not touched.
	StateUnreachable ClusterState = "Unreachable"
)

// ClusterStatus is the observed state of one cluster.
type ClusterStatus struct {
	// Name of the cluster.
	Name string `json:"name"`

	// State is one of Idle, Joining, Waiting, Used, Frozen, Refused, Leaving, Left,
	// Unreachable.
	// +optional
	State ClusterState `json:"state,omitempty"`

	// MinReplicas is the desired minimum of the cluster.
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the desired maximum of the cluster.
	// +optional
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// ConfirmedMinReplicas is the minimum that was last seen in the cluster.
	// +optional
	ConfirmedMinReplicas int32 `json:"confirmedMinReplicas,omitempty"`

	// ConfirmedMaxReplicas is the maximum that was last seen in the cluster.
	// +optional
	ConfirmedMaxReplicas int32 `json:"confirmedMaxReplicas,omitempty"`

	// ConfirmedVersion is the resourceVersion of the cluster's autoscaler with the confirmed bounds. A
	// controller that has not seen it yet writes nothing to the cluster.
	// +optional
	ConfirmedVersion string `json:"confirmedVersion,omitempty"`

	// Outstanding contains requests to the cluster whose outcome is unknown.
	// +optional
	Outstanding *Outstanding `json:"outstanding,omitempty"`

	// Epoch counts the requests that were sent.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`

	// CurrentReplicas, as last reported by the cluster's autoscaler.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas, as last reported by the cluster's autoscaler.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`

	// ReadyReplicas, as last reported by the workload.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Demand is how many replicas the cluster's metrics require, while that is more than its
	// maximum.
	// +optional
	Demand int32 `json:"demand,omitempty"`

	// LimitedBy is Max, Min or Rate, if the cluster's autoscaler reports that it is limited.
	// +optional
	LimitedBy LimitedBy `json:"limitedBy,omitempty"`

	// LeftReplicas is how many replicas may run without an autoscaler since the cluster left. They
	// count against maxReplicas until the workload has fewer or is gone, another autoscaler scales it,
	// or the cluster is used again. Replicas that others add later do not count.
	// +optional
	LeftReplicas int32 `json:"leftReplicas,omitempty"`

	// OnDemand reports whether the cluster has joined because others were at their limits.
	// +optional
	OnDemand bool `json:"onDemand,omitempty"`

	// MovedAt is when its bounds last changed, or its autoscaler was last seen to be gone.
	// +optional
	MovedAt *metav1.Time `json:"movedAt,omitempty"`

	// RemovableAfter is when the autoscaler can be deleted: before, a creation without a response
	// could still arrive.
	// +optional
	RemovableAfter *metav1.Time `json:"removableAfter,omitempty"`

	// NotReadySince is since when requested replicas have been missing.
	// +optional
	NotReadySince *metav1.Time `json:"notReadySince,omitempty"`

	// QuietSince is since when the other clusters could do without this cluster.
	// +optional
	QuietSince *metav1.Time `json:"quietSince,omitempty"`

	// UnreachableSince is when an unreachable cluster last responded.
	// +optional
	UnreachableSince *metav1.Time `json:"unreachableSince,omitempty"`

	// Reason is a one-word reason for the state, if the state does not explain itself.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is a human-readable description of the reason.
	// +optional
	Message string `json:"message,omitempty"`
}

// LimitedBy is what keeps a cluster's autoscaler from its desired number.
type LimitedBy string

// The limits.
const (
	ByMax  LimitedBy = "Max"
	ByMin  LimitedBy = "Min"
	ByRate LimitedBy = "Rate"
)

// Outstanding contains bounds whose outcome is not certain yet: a maximum counts as if it had been
// raised, a minimum as if it had been lowered.
type Outstanding struct {
	// MinReplicas is the lowest minimum of these requests.
	MinReplicas int32 `json:"minReplicas"`

	// MaxReplicas is the highest maximum of these requests.
	MaxReplicas int32 `json:"maxReplicas"`

	// Base is the resourceVersion that the cluster's autoscaler must have for the request to succeed,
	// empty if it must not exist. With any later version, the request has failed.
	// +optional
	Base string `json:"base,omitempty"`

	// Repeated reports whether an earlier request had the same base: a refusal of the last one does
	// not settle it.
	// +optional
	Repeated bool `json:"repeated,omitempty"`
}
