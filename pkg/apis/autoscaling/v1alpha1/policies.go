// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// Joining defines when clusters are used only on demand.
type Joining struct {
	// OnDemand lets the next cluster, by tier and name, join when replicas are left to distribute and
	// each used cluster is at its own maximum or cannot start its pods. It leaves again after
	// quietSeconds.
	// +optional
	OnDemand bool `json:"onDemand,omitempty"`

	// QuietSeconds is how long the cluster must need at most one replica, for which other clusters
	// have room, before it leaves. Default 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	QuietSeconds *int32 `json:"quietSeconds,omitempty"`
}

// Rebalance defines how bounds move between clusters. A maximum moves only when a cluster runs its
// whole maximum or asks for more, when clusters join or leave, or when this object changes.
type Rebalance struct {
	// CooldownSeconds is how long a cluster gives nothing away after its bounds changed. It can
	// receive at any time. Default 120.
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

	// Headroom is how many replicas a cluster that gives keeps beyond those that it requests now.
	// Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Headroom *int32 `json:"headroom,omitempty"`

	// StartTimeoutSeconds is how long requested replicas may be missing before the cluster counts as
	// stuck, and other clusters that need its share get what it cannot use. Set it to more than the
	// boot time of nodes. Default 300.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	StartTimeoutSeconds *int32 `json:"startTimeoutSeconds,omitempty"`

	// Probe is how many replicas a stuck cluster keeps beyond the ready ones, to show when it
	// recovers. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Probe *int32 `json:"probe,omitempty"`

	// Minima also moves minimums, from clusters that need fewer replicas than their minimum to
	// clusters that run more. Default false.
	// +optional
	Minima bool `json:"minima,omitempty"`
}

// Unreachable defines what happens to the share of a cluster that cannot be reached.
//
// +kubebuilder:validation:XValidation:rule="(has(self.policy) && self.policy == 'ReleaseAfter') == has(self.afterSeconds)",message="policy ReleaseAfter needs afterSeconds, and Hold must not have it"
type Unreachable struct {
	// Policy Hold (the default) keeps the share for the cluster, which may be using it. ReleaseAfter
	// lends it to other clusters after afterSeconds: more than maxReplicas can run then, and the
	// condition OverCommitted reports how many.
	// +optional
	// +kubebuilder:default=Hold
	Policy UnreachablePolicy `json:"policy,omitempty"`

	// AfterSeconds is how long a cluster must be unreachable before its share is lent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`

	// Released lists clusters that will not return: while they are unreachable, other clusters get
	// their share at once, and deletion does not wait for them. Replicas left in listed clusters that
	// are not selected no longer count.
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
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Template') == has(self.template)",message="mode Template needs a template, and External must not have one"
type Placement struct {
	// Mode External (the default) does not change the workload. Template creates it from template,
	// with one replica, in each used cluster, and keeps it up to date except for its replicas. When a
	// cluster leaves, leavePolicy applies.
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
