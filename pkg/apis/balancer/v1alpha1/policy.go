// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyName defines how replicas are distributed.
//
// +kubebuilder:validation:Enum=priority;proportional;even;tiers
type PolicyName string

// The policies.
const (
	// Priority fills one target after the other, in the order of policy.priorities.
	Priority PolicyName = "priority"
	// Proportional gives each target its share by policy.proportions.
	Proportional PolicyName = "proportional"
	// Even gives all targets the same number.
	Even PolicyName = "even"
	// Tiers fills one group of targets after the other; within a group, replicas are distributed by
	// proportions.
	Tiers PolicyName = "tiers"
)

// BalancerPolicy defines how replicas are distributed. Limits of targets take precedence: a target
// has its minReplicas whatever the policy is.
//
// +kubebuilder:validation:XValidation:rule="(self.policyName == 'priority') == has(self.priorities)",message="policyName priority requires the field priorities, and other policies must not have it"
// +kubebuilder:validation:XValidation:rule="(self.policyName == 'proportional') == has(self.proportions)",message="policyName proportional requires the field proportions, and other policies must not have it"
// +kubebuilder:validation:XValidation:rule="(self.policyName == 'tiers') == has(self.tiers)",message="policyName tiers requires the field tiers, and other policies must not have it"
type BalancerPolicy struct {
	// PolicyName selects the policy: priority, proportional, even or tiers.
	PolicyName PolicyName `json:"policyName"`

	// Priorities is required for the policy priority.
	// +optional
	Priorities *PriorityPolicy `json:"priorities,omitempty"`

	// Proportions is required for the policy proportional.
	// +optional
	Proportions *ProportionalPolicy `json:"proportions,omitempty"`

	// Tiers is required for the policy tiers: groups of targets. A later group gets replicas only
	// when the earlier ones are full. A target in no tier gets only its minReplicas.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.targets.all(n, self.exists_one(b, n in b.targets)))",message="a target must be in only one tier: remove its name from the others"
	Tiers []Tier `json:"tiers,omitempty"`

	// Fallback defines when replicas of a target count as failed to start, so that other targets
	// run them instead. If unset, they never do.
	// +optional
	Fallback *Fallback `json:"fallback,omitempty"`
}

// PriorityPolicy orders targets.
type PriorityPolicy struct {
	// TargetOrder lists targets; the first one is filled first. A target that is not listed gets
	// only its minReplicas.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(n, self.exists_one(m, m == n))",message="targetOrder must not contain a target twice"
	TargetOrder []string `json:"targetOrder"`
}

// ProportionalPolicy gives targets shares.
type ProportionalPolicy struct {
	// TargetProportions maps names of targets to their shares. Only the ratio matters. With 0 or
	// less, or without a share, a target gets only its minReplicas.
	// +kubebuilder:validation:MinProperties=2
	// +kubebuilder:validation:MaxProperties=64
	TargetProportions map[string]int32 `json:"targetProportions"`
}

// Tier is a group of targets that are filled together.
//
// +kubebuilder:validation:XValidation:rule="!has(self.proportions) || self.proportions.all(n, n in self.targets)",message="proportions names a target that is not in this tier: add it to targets, or remove it"
type Tier struct {
	// Targets names the members.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(n, self.exists_one(m, m == n))",message="a tier must not contain a target twice"
	Targets []string `json:"targets"`

	// Proportions maps members to their shares, 0 to 1000000. Default 1 for each member.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(n, self[n] >= 0 && self[n] <= 1000000)",message="a share must be from 0 to 1000000: only the ratio of shares counts"
	Proportions map[string]int32 `json:"proportions,omitempty"`
}

// Fallback defines when replicas of a target count as failed to start, and when the target has
// recovered.
//
// +kubebuilder:validation:XValidation:rule="has(self.startupTimeoutSeconds) != has(self.startupTimeout)",message="set exactly one of startupTimeoutSeconds (180) and startupTimeout (\"3m\")"
type Fallback struct {
	// StartupTimeoutSeconds is how long a replica may take to start. A target is blocked if a replica
	// takes longer, or if replicas are missing and none has started for that time. Other targets then
	// run what it cannot run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartupTimeoutSeconds *int32 `json:"startupTimeoutSeconds,omitempty"`

	// StartupTimeout is the same as a duration, for example "3m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$')",message="use a duration such as \"90s\" or \"3m\", not below 0"
	StartupTimeout *metav1.Duration `json:"startupTimeout,omitempty"`

	// StartCriterion defines when a replica has started. Running: when its containers run. Ready:
	// when it is ready; then, a crash loop is a failure to start. Default Running.
	// +optional
	StartCriterion StartCriterion `json:"startCriterion,omitempty"`

	// Probe is how many replicas a blocked target keeps beyond those that run, to show when it
	// recovers. If unset, it keeps all. With a HorizontalPodAutoscaler on the Balancer, prefer 1,
	// because the autoscaler counts replicas that do not start as idle and scales up too late. Minimum
	// 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Probe *int32 `json:"probe,omitempty"`

	// BlockedWhen defines how many replicas must fail before the target counts as blocked. Default
	// one.
	// +optional
	BlockedWhen *BlockedWhen `json:"blockedWhen,omitempty"`

	// RecoveryDelaySeconds is how long a new replica of a blocked target must be ready before it
	// counts. It doubles with each fallback soon after a recovery, up to 32 times. Default 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	RecoveryDelaySeconds *int32 `json:"recoveryDelaySeconds,omitempty"`
}

// StartCriterion defines when a replica has started.
//
// +kubebuilder:validation:Enum=Running;Ready
type StartCriterion string

// The start criteria.
const (
	Running StartCriterion = "Running"
	Ready   StartCriterion = "Ready"
)

// BlockedWhen is how many replicas must fail to start. Both numbers must be reached.
type BlockedWhen struct {
	// MinCount is a number of replicas. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCount *int32 `json:"minCount,omitempty"`

	// Percent is a percentage of the target's replicas, rounded up. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
}
