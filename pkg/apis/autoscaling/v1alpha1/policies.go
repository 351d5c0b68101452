// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// Joining is about clusters that are used only in times of need.
type Joining struct {
	// OnDemand has the next cluster, by tier and name, join when each used one is at its own maximum or does not get its
	// pods started, and replicas are left to give. It leaves again after a quiet time.
	// +optional
	OnDemand bool `json:"onDemand,omitempty"`

	// QuietSeconds is for how long it has to run no more than one replica, and the other clusters be able to do without that,
	// before it leaves. Default 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	QuietSeconds *int32 `json:"quietSeconds,omitempty"`
}

// Rebalance says how bounds move between clusters. A maximum only moves when a cluster asks for more than its own, when
// clusters come or go, or when this object is changed.
type Rebalance struct {
	// CooldownSeconds is for how long a cluster whose bounds were changed does not give any of them away. Receiving is not
	// delayed. Default 120.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// MaxStepPercent is how much of maxReplicas one cluster gives away at once, rounded up. Default 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxStepPercent *int32 `json:"maxStepPercent,omitempty"`

	// Headroom is what a giving cluster keeps beyond the replicas it asks for now. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Headroom *int32 `json:"headroom,omitempty"`

	// StartTimeoutSeconds is how long replicas may be missing that a cluster has been asked for before it counts as stuck:
	// what it cannot use is then given to clusters that can. Default 900, since new nodes take minutes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	StartTimeoutSeconds *int32 `json:"startTimeoutSeconds,omitempty"`

	// Probe is what a stuck cluster keeps beyond the replicas that are ready, so that its recovery shows. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Probe *int32 `json:"probe,omitempty"`

	// Minima moves minima too: from clusters that would run fewer than theirs to clusters that run more. Off by default.
	// +optional
	Minima bool `json:"minima,omitempty"`
}

// Unreachable says what becomes of the share of a cluster that cannot be reached.
//
// +kubebuilder:validation:XValidation:rule="(has(self.policy) && self.policy == 'ReleaseAfter') == has(self.afterSeconds)",message="policy ReleaseAfter needs afterSeconds, and Hold does not have it"
type Unreachable struct {
	// Policy Hold, which is the default, keeps the share for the cluster, whose autoscaler may be using it. ReleaseAfter
	// lends it to other clusters after afterSeconds: more replicas than maxReplicas may run then, and the condition
	// OverCommitted says how many.
	// +optional
	// +kubebuilder:default=Hold
	Policy UnreachablePolicy `json:"policy,omitempty"`

	// AfterSeconds is how long a cluster has to be out of reach before its share is lent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`

	// Released names clusters that will not come back: their share is given away at once while they are out of reach.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Released []string `json:"released,omitempty"`
}

// UnreachablePolicy is what to do about a cluster that cannot be reached.
//
// +kubebuilder:validation:Enum=Hold;ReleaseAfter
type UnreachablePolicy string

// The policies for clusters out of reach.
const (
	Hold         UnreachablePolicy = "Hold"
	ReleaseAfter UnreachablePolicy = "ReleaseAfter"
)

// Placement says who brings the workload into a cluster.
//
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Template') == has(self.template)",message="mode Template needs a template, and External does not have one"
type Placement struct {
	// Mode External, which is the default, leaves the workload alone. Template creates it from template, with one replica,
	// in each used cluster that lacks it, keeps it up to date but for its replicas, and removes what it has created from
	// clusters that are no longer used.
	// +optional
	// +kubebuilder:default=External
	Mode PlacementMode `json:"mode,omitempty"`

	// Template is the whole workload, without replicas.
	// +optional
	// +kubebuilder:validation:EmbeddedResource
	Template *runtime.RawExtension `json:"template,omitempty"`
}

// PlacementMode is who brings the workload into a cluster.
//
// +kubebuilder:validation:Enum=External;Template
type PlacementMode string

// The modes of placement.
const (
	External PlacementMode = "External"
	Template PlacementMode = "Template"
)
