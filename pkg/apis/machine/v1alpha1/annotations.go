// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AnnotationPrefix begins every annotation of Evenkeel.
const AnnotationPrefix = "evenkeel.machine.sapcloud.io/"

// Annotations of Evenkeel. Each has one writer.
const (
	// BoundsAnnotation, on a MachineDeployment, holds "min:max:excess"; see [ParseBounds]. The user writes it.
	BoundsAnnotation = AnnotationPrefix + "bounds"

	// ReserveAnnotation marks a Machine as being in reserve; see [Reserve]. On the Machine's Node, and in its node
	// template, it says since when.
	ReserveAnnotation = AnnotationPrefix + "reserve"

	// ReserveStateAnnotation, on a Machine, is for people: since when it is in reserve or when it left, why, and whether its Node
	// carries the reserve taint. It is absent from a Machine that was never in reserve. The machine-taint controller writes it.
	ReserveStateAnnotation = AnnotationPrefix + "reserve-state"

	// AppliedExcessAnnotation, on a MachineDeployment, is what machine-controller-manager is asked to run beyond
	// replicas; see [ParseAppliedExcess]. The machine-taint controller writes it.
	AppliedExcessAnnotation = AnnotationPrefix + "applied-excess"

	// AppliedReplicasAnnotation, on a MachineDeployment, is the number of replicas that machine-controller-manager may
	// act on while growth is being split over zones; see [ParseAppliedReplicas]. The balance controller writes it.
	AppliedReplicasAnnotation = AnnotationPrefix + "applied-replicas"
)
