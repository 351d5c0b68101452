// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Balancer distributes spec.replicas over its targets by a policy. While one target fails to start
// replicas, other targets run them. A Balancer can be scaled like a Deployment.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Number of replicas to distribute."
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of ready replicas of all targets."
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policy.policyName`,description="How replicas are distributed."
// +kubebuilder:printcolumn:name="Balanced",type=string,JSONPath=`.status.conditions[?(@.type=="Balanced")].status`,description="Whether every target has its desired replicas."
// +kubebuilder:printcolumn:name="Fallback",type=string,JSONPath=`.status.conditions[?(@.type=="FallbackActive")].status`,description="Whether some targets run replicas for others."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the Balancer was created."
// +kubebuilder:validation:XValidation:rule="self.spec.targets.all(t, !(t.scaleTargetRef.kind == 'Balancer' && t.scaleTargetRef.name == self.metadata.name && has(t.scaleTargetRef.apiVersion) && t.scaleTargetRef.apiVersion.startsWith('balancer.x-k8s.io/')))",message="a Balancer must not be its own target"
type Balancer struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Specification of the desired behavior of the Balancer.
	Spec BalancerSpec `json:"spec"`

	// Most recently observed status of the Balancer.
	// +optional
	Status BalancerStatus `json:"status,omitempty"`
}

// BalancerSpec defines what to distribute, where and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.policy.priorities) || self.policy.priorities.targetOrder.all(n, self.targets.exists(t, t.name == n))",message="policy.priorities.targetOrder names a target that is not in targets: add the target, or remove the name"
// +kubebuilder:validation:XValidation:rule="!has(self.policy.tiers) || self.policy.tiers.all(tier, tier.targets.all(n, self.targets.exists(t, t.name == n)))",message="policy.tiers names a target that is not in targets: add the target, or remove the name"
// +kubebuilder:validation:XValidation:rule="!has(self.policy.proportions) || self.policy.proportions.targetProportions.all(n, self.targets.exists(t, t.name == n)) || oldSelf.hasValue() && oldSelf.value().policy == self.policy && oldSelf.value().targets == self.targets",optionalOldSelf=true,message="policy.proportions.targetProportions names a target that is not in targets: add the target, or remove the name"
// +kubebuilder:validation:XValidation:rule="self.targets.all(t, self.targets.exists_one(u, u.scaleTargetRef == t.scaleTargetRef))",message="two targets have the same scaleTargetRef: each workload may be in targets only once"
type BalancerSpec struct {
	// Targets are the workloads to distribute replicas over, at least 2 and at most 64. Their names
	// are unique.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=64
	Targets []BalancerTarget `json:"targets"`

	// Replicas is the number of replicas to distribute. Default 1: omit it if an autoscaler writes it.
	// For a HorizontalPodAutoscaler, 0 means that autoscaling is disabled.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector matches the pods of all targets and no others, like the selector of their Service. It
	// must not be empty. A target with a pod that does not match is not scaled.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector matches every pod of the namespace: use a label that the pods of all targets have"
	Selector metav1.LabelSelector `json:"selector"`

	// Policy defines how replicas are distributed.
	Policy BalancerPolicy `json:"policy"`

	// Transition limits how fast replicas move from one target to another. It does not delay changes
	// of the total, or fallback.
	// +optional
	Transition *Transition `json:"transition,omitempty"`

	// Paused stops all writes to targets. The status still shows the desired replicas.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// BalancerTarget is one workload that runs replicas.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || type(self.minReplicas) != int || int(self.minReplicas) >= 0 && int(self.minReplicas) <= 2147483647",message="minReplicas: use a number from 0 to 2147483647, or a percentage of spec.replicas from 0% to 100%"
// +kubebuilder:validation:XValidation:rule="!has(self.maxReplicas) || type(self.maxReplicas) != int || int(self.maxReplicas) >= 0 && int(self.maxReplicas) <= 2147483647",message="maxReplicas: use a number from 0 to 2147483647, or a percentage of spec.replicas from 0% to 100%"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || type(self.minReplicas) != int || type(self.maxReplicas) != int || int(self.minReplicas) <= int(self.maxReplicas)",message="minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.observer) || self.observer == 'Status' || (self.observer == 'Machines') == (has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion.startsWith('machine.sapcloud.io/'))",message="observer Machines is for the kinds of machine.sapcloud.io, and observer Pods for all others: remove observer, or set it to Status"
type BalancerTarget struct {
	// Name of the target within this Balancer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// ScaleTargetRef is the workload, in the namespace of the Balancer. Its kind must have a scale
	// subresource, and the controller must be allowed to scale it.
	ScaleTargetRef ScaleTargetReference `json:"scaleTargetRef"`

	// MinReplicas is the minimum of the target under any policy, even if spec.replicas is less: a
	// number, or a percentage of spec.replicas, rounded down. Default 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	MinReplicas *intstr.IntOrString `json:"minReplicas,omitempty"`

	// MaxReplicas is the maximum of the target: a number, or a percentage of spec.replicas, rounded
	// up. If unset, there is no limit. If a percentage is below minReplicas, minReplicas applies.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`

	// State takes a target out of service without removing it: Draining reduces it to minReplicas,
	// Drained to 0. Default Active.
	// +optional
	State TargetState `json:"state,omitempty"`

	// Observer defines where the health of replicas is read. Default: Machines for the kinds of
	// machine.sapcloud.io, Pods if the workload publishes a pod selector, otherwise Status.
	// +optional
	Observer Observer `json:"observer,omitempty"`
}

// ScaleTargetReference identifies a workload of the same namespace.
type ScaleTargetReference struct {
	// APIVersion of the workload, for example apps/v1. Empty means v1.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the workload, for example Deployment, or ReplicationController with apiVersion v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// TargetState defines whether a target takes replicas.
//
// +kubebuilder:validation:Enum=Active;Draining;Drained
type TargetState string

// The states of a target.
const (
	Active   TargetState = "Active"
	Draining TargetState = "Draining"
	Drained  TargetState = "Drained"
)

// Observer is a way to read the health of a target's replicas.
//
// +kubebuilder:validation:Enum=Pods;Status;Machines
type Observer string

// The observers.
const (
	// PodsObserver reads the pods that the workload selects.
	PodsObserver Observer = "Pods"
	// StatusObserver reads the counts in the workload's own status.
	StatusObserver Observer = "Status"
	// MachinesObserver reads the Machines that the workload selects.
	MachinesObserver Observer = "Machines"
)

// Transition limits a move of replicas between targets. Percentages are of all desired replicas,
// rounded up. At least one of the two must be above 0.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || !(string(self.maxSurge) in ['0', '0%']) || has(self.maxUnavailable) && !(string(self.maxUnavailable) in ['0', '0%'])",message="maxSurge and maxUnavailable must not both be 0, because then no replica could move"
type Transition struct {
	// MaxSurge is how many replicas may exist beyond the desired ones. Default 25%, and 1 if a
	// target consists of machines.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 0 && int(self) <= 2147483647",message="use a number from 0 to 2147483647, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// MaxUnavailable is how many of the desired replicas may be missing or not ready. Default 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 0 && int(self) <= 2147483647",message="use a number from 0 to 2147483647, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// BalancerList is a list of Balancers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type BalancerList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items is the list of Balancers.
	Items []Balancer `json:"items"`
}
