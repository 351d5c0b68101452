// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BalancerStatus is what the controller last observed and decided.
type BalancerStatus struct {
	// Replicas is the number of observed replicas that count towards spec.replicas. It does not
	// include replicas that replace failing ones, are surplus during a move, or are about to be
	// deleted. At rest, and within limits, it equals spec.replicas.
	Replicas int32 `json:"replicas"`

	// Selector is spec.selector as text, for autoscalers; empty if it is invalid.
	Selector string `json:"selector"`

	// ObservedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ObservedReplicas is the number of all observed replicas, without terminating ones.
	// +optional
	ObservedReplicas int32 `json:"observedReplicas,omitempty"`

	// ReadyReplicas is the number of ready replicas.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// DesiredReplicas is the sum of the desired replicas of the targets, including those that
	// replace failing ones.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`

	// Overflow is the number of replicas that no target has room for.
	// +optional
	Overflow int32 `json:"overflow,omitempty"`

	// Deficit is the number of replicas by which the minimums exceed spec.replicas.
	// +optional
	Deficit int32 `json:"deficit,omitempty"`

	// ShareErrorPercent is the largest difference between a target and its exact share, in percent of
	// all replicas, rounded up.
	// +optional
	ShareErrorPercent int32 `json:"shareErrorPercent,omitempty"`

	// Targets is the state of each target, in the order of spec.targets.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []TargetStatus `json:"targets,omitempty"`

	// Conditions are Ready, Balanced, WithinLimits, FallbackActive, TargetsResolved, and Balancing
	// for clients that know only that one.
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

	// Replicas is the number that the workload is scaled to now.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Desired is the number that it will be scaled to. A move reaches it step by step.
	// +optional
	Desired int32 `json:"desired,omitempty"`

	// Base is its share if all targets are healthy.
	// +optional
	Base int32 `json:"base,omitempty"`

	// Observed is the number of its replicas, without terminating ones.
	// +optional
	Observed int32 `json:"observed,omitempty"`

	// Ready is the number of these that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`

	// NotStarted is the number of replicas that did not start in time, including those that were
	// never created.
	// +optional
	NotStarted int32 `json:"notStarted,omitempty"`

	// Fallback is how many of its replicas other targets run while it is blocked, as far as they have
	// room: those that did not start in time, until as many new ones have been ready for the recovery
	// delay. If more did not start than run, it is all of its share that does not run.
	// +optional
	Fallback int32 `json:"fallback,omitempty"`

	// UnstartedSince is since when enough replicas to block the target have been missing or not
	// started, while none has started. In a blocked target, only replicas beyond NotStarted count.
	// +optional
	UnstartedSince *metav1.Time `json:"unstartedSince,omitempty"`

	// BlockedSince is since when the target has been blocked, if it is.
	// +optional
	BlockedSince *metav1.Time `json:"blockedSince,omitempty"`

	// RecoveredAt is when it last recovered.
	// +optional
	RecoveredAt *metav1.Time `json:"recoveredAt,omitempty"`

	// Blocks is how often in a row it was blocked again soon after a recovery.
	// +optional
	Blocks int32 `json:"blocks,omitempty"`

	// Reason is why the target is not scaled or is blocked, in one word; empty if all is well.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message describes the reason, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types of a Balancer.
const (
	// ConditionBalancing is the only condition that clients of the original API know: True with
	// reason Completed, or False with the phase that could not be completed for all targets as its
	// reason.
	ConditionBalancing = "Balancing"
	// ConditionReady is the summary: the spec can be carried out, and the Balancer manages all
	// targets.
	ConditionReady = "Ready"
	// ConditionBalanced reports whether all targets have the desired replicas.
	ConditionBalanced = "Balanced"
	// ConditionWithinLimits reports whether the limits leave room for spec.replicas, and do not
	// require more.
	ConditionWithinLimits = "WithinLimits"
	// ConditionFallbackActive reports whether targets run replicas of blocked targets.
	ConditionFallbackActive = "FallbackActive"
	// ConditionTargetsResolved reports whether all targets exist and can be scaled.
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
