// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyName says how replicas are distributed.
//
// +kubebuilder:validation:Enum=priority;proportional;even;tiers
type PolicyName string

// The policies.
const (
	// Priority fills one target after the other, in the order of policy.priorities.
	Priority PolicyName = "priority"
	// Proportional gives each target its share by policy.proportions.
	Proportional PolicyName = "proportional"
	// Even gives all targets the same.
	Even PolicyName = "even"
	// Tiers fills one group of targets after the other; within a group, replicas are distributed by proportions.
	Tiers PolicyName = "tiers"
)

// BalancerPolicy says how replicas are distributed. Bounds of targets come first: a target has its minReplicas whatever
// the policy says.
//
// +kubebuilder:validation:XValidation:rule="(self.policyName == 'priority') == has(self.priorities)",message="policyName priority requires the field priorities, and other policies must not have it"
// +kubebuilder:validation:XValidation:rule="(self.policyName == 'proportional') == has(self.proportions)",message="policyName proportional requires the field proportions, and other policies must not have it"
// +kubebuilder:validation:XValidation:rule="(self.policyName == 'tiers') == has(self.tiers)",message="policyName tiers requires the field tiers, and other policies must not have it"
type BalancerPolicy struct {
	// PolicyName chooses the policy: priority, proportional, even or tiers.
	PolicyName PolicyName `json:"policyName"`

	// Priorities is needed by the policy priority.
	// +optional
	Priorities *PriorityPolicy `json:"priorities,omitempty"`

	// Proportions is needed by the policy proportional.
	// +optional
	Proportions *ProportionalPolicy `json:"proportions,omitempty"`

	// Tiers is needed by the policy tiers: groups of targets, of which a later one gets replicas only once the earlier ones
	// are full. A target in no tier gets its minReplicas and nothing above.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.targets.all(n, self.exists_one(b, n in b.targets)))",message="a target must be in only one tier: remove its name from the others"
	Tiers []Tier `json:"tiers,omitempty"`

	// Fallback says when replicas of a target count as failed to start, so that other targets stand in for them. Not set
	// means never.
	// +optional
	Fallback *Fallback `json:"fallback,omitempty"`
}

// PriorityPolicy orders targets.
type PriorityPolicy struct {
	// TargetOrder names targets, the first to fill first. A target that is left out gets its minReplicas and nothing above.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(n, self.exists_one(m, m == n))",message="targetOrder must not contain a target twice"
	TargetOrder []string `json:"targetOrder"`
}

// ProportionalPolicy gives targets shares.
type ProportionalPolicy struct {
	// TargetProportions maps names of targets to their shares. Only the ratio counts; 0 or less means minReplicas and
	// nothing above, like being left out.
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

	// Proportions maps members to their shares, 0 to 1000000. A member that is left out has the share 1.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(n, self[n] >= 0 && self[n] <= 1000000)",message="a share must be from 0 to 1000000: only the ratio of shares counts"
	Proportions map[string]int32 `json:"proportions,omitempty"`
}

// Fallback says when replicas of a target count as failed to start, and when it has recovered.
//
// +kubebuilder:validation:XValidation:rule="has(self.startupTimeoutSeconds) != has(self.startupTimeout)",message="set exactly one of startupTimeoutSeconds (180) and startupTimeout (\"3m\")"
type Fallback struct {
	// StartupTimeoutSeconds is how long a replica may take to start, in seconds. A target in which one takes longer, or in
	// which for so long none has started though some are missing, is blocked: others stand in for what it cannot run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartupTimeoutSeconds *int32 `json:"startupTimeoutSeconds,omitempty"`

	// StartupTimeout is the same as a duration, as in "3m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$')",message="use a duration such as \"90s\" or \"3m\", not below 0"
	StartupTimeout *metav1.Duration `json:"startupTimeout,omitempty"`

	// StartCriterion says when a replica has started. Running is when its containers run, Ready when it is ready; with Ready
	// a crash loop is a failure to start. Not set means Running.
	// +optional
	StartCriterion StartCriterion `json:"startCriterion,omitempty"`

	// Probe is how many replicas a blocked target is left with beyond those that run, to show when it has recovered. Not
	// set means all it would have. With a HorizontalPodAutoscaler on the Balancer prefer 1: it takes replicas that do
	// not start for idle ones, and scales up too late. The minimum is 1: with none its recovery would not show.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Probe *int32 `json:"probe,omitempty"`

	// BlockedWhen says how many replicas have to fail before the target counts as blocked. Not set means one.
	// +optional
	BlockedWhen *BlockedWhen `json:"blockedWhen,omitempty"`

	// RecoveryDelaySeconds is for how long a replica that starts in a blocked target has to be ready before it counts. It
	// doubles with each fallback that follows soon after a recovery, up to 32 times. Not set means 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	RecoveryDelaySeconds *int32 `json:"recoveryDelaySeconds,omitempty"`
}

// StartCriterion says when a replica has started.
//
// +kubebuilder:validation:Enum=Running;Ready
type StartCriterion string

// The start criteria.
const (
	Running StartCriterion = "Running"
	Ready   StartCriterion = "Ready"
)

// BlockedWhen is how many replicas have to fail to start; both numbers have to be reached.
type BlockedWhen struct {
	// MinCount is a number of replicas. Not set means 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCount *int32 `json:"minCount,omitempty"`

	// Percent is a percentage of the target's replicas, rounded up. Not set means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
}
