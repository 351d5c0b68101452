// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// Joining defines when clusters are used only on demand.
type Joining struct {
	// OnDemand lets the next cluster, by tier and name, join when each used cluster is at its own
	// maximum or cannot start its pods, and replicas are left to distribute. The cluster leaves
	// again after a quiet time.
	// +optional
	OnDemand bool `json:"onDemand,omitempty"`

	// QuietSeconds is how long the cluster must run at most one replica, which the other clusters
	// could run as well, before it leaves. Default 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	QuietSeconds *int32 `json:"quietSeconds,omitempty"`
}

// Rebalance defines how bounds move between clusters. A maximum moves only when a cluster runs its
// whole maximum or asks for more, when clusters join or leave, or when this object changes.
type Rebalance struct {
	// CooldownSeconds is how long a cluster gives nothing away after its bounds were changed.
	// Receiving is not delayed. Default 120.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// MaxStepPercent is the largest percentage of maxReplicas that one cluster gives away at once,
	// rounded up. Default 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxStepPercent *int32 `json:"maxStepPercent,omitempty"`

	// Headroom is the number of replicas that a giving cluster keeps beyond those that it asks for
	// now. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Headroom *int32 `json:"headroom,omitempty"`

	// StartTimeoutSeconds is how long requested replicas may be missing before the cluster counts
	// as stuck: the replicas that it cannot run are then given to other clusters, if these need
	// them. It should be longer than new nodes take. Default 300.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	StartTimeoutSeconds *int32 `json:"startTimeoutSeconds,omitempty"`

	// Probe is the number of replicas that a stuck cluster keeps beyond the ready ones, so that its
	// recovery becomes visible. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Probe *int32 `json:"probe,omitempty"`

	// Minima also moves minima: from clusters that would run fewer replicas than their minimum to
	// clusters that run more. Off by default.
	// +optional
	Minima bool `json:"minima,omitempty"`
}

// Unreachable defines what happens to the share of a cluster that cannot be reached.
//
// +kubebuilder:validation:XValidation:rule="(has(self.policy) && self.policy == 'ReleaseAfter') == has(self.afterSeconds)",message="policy ReleaseAfter needs afterSeconds, and Hold does not have it"
type Unreachable struct {
	// Policy Hold (the default) keeps the share for the cluster, whose autoscaler may be using it.
	// ReleaseAfter lends it to other clusters after afterSeconds: more replicas than maxReplicas
	// may run then, and the condition OverCommitted reports how many.
	// +optional
	// +kubebuilder:default=Hold
	Policy UnreachablePolicy `json:"policy,omitempty"`

	// AfterSeconds is how long a cluster must be out of reach before its share is lent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`

	// Released lists clusters that will not return: while they are out of reach, their share is
	// given away at once, and a deleted object does not wait for them. What a cluster that is not
	// selected has left running no longer counts, whether it is out of reach or not.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Released []string `json:"released,omitempty"`
}

// UnreachablePolicy defines what to do about a cluster that cannot be reached.
//
// +kubebuilder:validation:Enum=Hold;ReleaseAfter
type UnreachablePolicy string

// The policies for clusters out of reach.
const (
	Hold         UnreachablePolicy = "Hold"
	ReleaseAfter UnreachablePolicy = "ReleaseAfter"
)

// Placement defines how the workload gets into a cluster.
//
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Template') == has(self.template)",message="mode Template needs a template, and External does not have one"
type Placement struct {
	// Mode External (the default) leaves the workload alone. Template creates it from template,
	// with one replica, in each used cluster that does not have it, and keeps it up to date except
	// for its replicas. In a cluster that leaves, leavePolicy decides about it.
	// +optional
	// +kubebuilder:default=External
	Mode PlacementMode `json:"mode,omitempty"`

	// Template is the whole workload, without replicas.
	// +optional
	// +kubebuilder:validation:EmbeddedResource
	Template *runtime.RawExtension `json:"template,omitempty"`
}

// PlacementMode defines how the workload gets into a cluster.
//
// +kubebuilder:validation:Enum=External;Template
type PlacementMode string

// The modes of placement.
const (
	External PlacementMode = "External"
	Template PlacementMode = "Template"
)
