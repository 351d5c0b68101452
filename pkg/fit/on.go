// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Obstacle is what keeps a pod from a node. If there are several, it is the first of this list.
type Obstacle string

const (
	// Fits: no obstacle.
	Fits Obstacle = ""
	// Undecided: this cannot be decided; see [Pod.Unclear].
	Undecided Obstacle = "Undecided"
	// Full: requests, or the number of pods.
	Full Obstacle = "Full"
	// Elsewhere: the pod's node selector or required node affinity.
	Elsewhere Obstacle = "Elsewhere"
	// Tainted: a taint that the pod does not tolerate, or the node is cordoned.
	Tainted Obstacle = "Tainted"
	// VolumeElsewhere: a volume that cannot be used there.
	VolumeElsewhere Obstacle = "VolumeElsewhere"
	// AllocatedElsewhere: a device that the pod has, and that cannot be used there.
	AllocatedElsewhere Obstacle = "AllocatedElsewhere"
	// PortTaken: a host port.
	PortTaken Obstacle = "PortTaken"
	// Lonely: the pods that it must be together with are not there.
	Lonely Obstacle = "Lonely"
	// Repelled: anti-affinity, its own or that of a pod that is there.
	Repelled Obstacle = "Repelled"
	// Uneven: the pod would exceed the maximum skew, or the node lacks the label.
	Uneven Obstacle = "Uneven"
	// NoDevices: too few free devices that its claims allow.
	NoDevices Obstacle = "NoDevices"
)

// On considers a node as if no pods ran there, and no other node existed. Taints with any of the
// given keys are ignored. Pod affinity and topology spread are ignored, because they depend on
// other pods.
func On(p *Pod, node *corev1.Node, without ...string) Obstacle {
	free := stockOf(node.Status.Allocatable)
	if p.Unclear == "" && !free.fits(p.needs) {
		return Full
	}
	o := Suits(p, node, without...)
	if o == Fits && p.claims != nil {
		return p.claims.Possible(node)
	}
	return o
}

// Suits is [On] for a node with room for everything.
func Suits(p *Pod, node *corev1.Node, without ...string) Obstacle {
	if p.Unclear != "" {
		return p.unclearOn(node)
	}
	return p.obstacleOn(node, lasting(taintsOf(node), without))
}

// unclearOn is obstacleOn for a pod that is not clear: whatever else its rules are, it cannot run
// where its node selector or required node affinity does not allow it.
func (p *Pod) unclearOn(node *corev1.Node) Obstacle {
	if ok, err := p.required.Match(node); !ok && err == nil {
		return Elsewhere
	}
	return Undecided
}

// obstacleOn returns the obstacle that the node itself is for the pod, whatever runs there.
func (p *Pod) obstacleOn(node *corev1.Node, taints []corev1.Taint) Obstacle {
	if ok, _ := p.required.Match(node); !ok { // an error comes with false
		return Elsewhere
	}
	if repels(taints, p.Object) {
		return Tainted
	}
	for _, v := range p.volumes {
		if !v.reaches(node) {
			return VolumeElsewhere
		}
	}
	if p.claims != nil && !p.claims.Reaches(node) {
		return AllocatedElsewhere
	}
	return Fits
}

// cordoned is the taint of a node that accepts no new pods.
var cordoned = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// repels reports whether one of the taints keeps the pod away.
func repels(taints []corev1.Taint, pod *corev1.Pod) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(pod.Spec.Tolerations, t)
	})
}

func tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case "", corev1.TolerationOpEqual:
			return t.Value == taint.Value
		}
		return false
	})
}

// taintsOf returns the taints of a node, including the one for a cordoned node.
func taintsOf(node *corev1.Node) []corev1.Taint {
	if !node.Spec.Unschedulable {
		return node.Spec.Taints
	}
	return append(slices.Clone(node.Spec.Taints), cordoned)
}

// lasting returns the taints without those with the given keys.
func lasting(taints []corev1.Taint, without []string) []corev1.Taint {
	gone := func(t corev1.Taint) bool { return slices.Contains(without, t.Key) }
	if !slices.ContainsFunc(taints, gone) {
		return taints
	}
	return slices.DeleteFunc(slices.Clone(taints), gone)
}
