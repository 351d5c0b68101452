// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BalancerStatus is what the controller has last seen and decided.
type BalancerStatus struct {
	// Replicas is the number of replicas seen that count towards spec.replicas: not those that stand in for replicas that
	// fail to start, are surplus during a move, or are about to go. At rest, and within limits, it is spec.replicas.
	Replicas int32 `json:"replicas"`

	// Selector is spec.selector as text, for autoscalers; empty where it is not valid.
	Selector string `json:"selector"`

	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ObservedReplicas is the number of all replicas seen, without those that are terminating.
	// +optional
	ObservedReplicas int32 `json:"observedReplicas,omitempty"`

	// ReadyReplicas is the number of ready replicas.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// DesiredReplicas is the sum of what the targets are meant to have, those that stand in for others included.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`

	// Overflow is how many replicas no target can take.
	// +optional
	Overflow int32 `json:"overflow,omitempty"`

	// Deficit is by how many replicas the minimums exceed spec.replicas.
	// +optional
	Deficit int32 `json:"deficit,omitempty"`

	// ShareErrorPercent is the largest distance of a target from its exact share, in percent of all replicas, rounded
	// up. Whole replicas cannot meet every share.
	// +optional
	ShareErrorPercent int32 `json:"shareErrorPercent,omitempty"`

	// Targets is the state of each target, in the order of spec.targets.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []TargetStatus `json:"targets,omitempty"`

	// Conditions are Ready, Balanced, WithinLimits, FallbackActive, TargetsResolved, and Balancing for readers that know
	// no other.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// TargetStatus is the state of one target. All counts are of replicas.
type TargetStatus struct {
	// Name of the target.
	Name string `json:"name"`

	// Replicas is what the workload is asked for now.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Desired is what it is meant to be asked for; a move gets there step by step.
	// +optional
	Desired int32 `json:"desired,omitempty"`

	// Base is its share with every target in good health.
	// +optional
	Base int32 `json:"base,omitempty"`

	// Observed is how many it has, without those that are terminating.
	// +optional
	Observed int32 `json:"observed,omitempty"`

	// Ready is how many of these are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`

	// NotStarted is how many have failed to start in time, those included that were never created.
	// +optional
	NotStarted int32 `json:"notStarted,omitempty"`

	// UnstartedSince is since when some have been missing or not started with none starting meanwhile.
	// +optional
	UnstartedSince *metav1.Time `json:"unstartedSince,omitempty"`

	// BlockedSince is since when the target has been blocked; absent while it is not.
	// +optional
	BlockedSince *metav1.Time `json:"blockedSince,omitempty"`

	// RecoveredAt is when it was last blocked no more.
	// +optional
	RecoveredAt *metav1.Time `json:"recoveredAt,omitempty"`

	// Blocks counts how often in a row it was blocked again soon after it had recovered.
	// +optional
	Blocks int32 `json:"blocks,omitempty"`

	// Reason says in one word why the target is not written to, or is blocked; empty where all is well.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says the same in a sentence, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types of a Balancer.
const (
	// ConditionBalancing is the one condition that readers of the original API know: True with reason Completed, or
	// False with the phase that could not be completed for all targets as its reason.
	ConditionBalancing = "Balancing"
	// ConditionReady sums up: the spec can be carried out and the Balancer manages all targets.
	ConditionReady = "Ready"
	// ConditionBalanced says that all targets have the desired replicas.
	ConditionBalanced = "Balanced"
	// ConditionWithinLimits says that the bounds leave room for spec.replicas, and do not ask for more.
	ConditionWithinLimits = "WithinLimits"
	// ConditionFallbackActive says that targets stand in for others.
	ConditionFallbackActive = "FallbackActive"
	// ConditionTargetsResolved says that all targets exist and can be scaled.
	ConditionTargetsResolved = "TargetsResolved"
)

// Phases: reasons of the condition Balancing.
const (
	ReasonCompleted         = "Completed"
	PhaseScaleSubresource   = "ScaleSubresourcePolling"
	PhasePodListing         = "PodListing"
	PhasePodLabelsChecking  = "PodLabelsChecking"
	PhaseApplyingPolicy     = "ApplyingBalancerPolicy"
	PhaseReplicaCountWrites = "ReplicaCountSetting"
)
