// SPDX-License-Identifier: Apache-2.0

package fit

import (
	corev1 "k8s.io/api/core/v1"
)

// Obstacle is what keeps a pod from a node; where there are several, the first of this list.
type Obstacle string

const (
	// Fits: nothing does.
	Fits Obstacle = ""
	// Undecided: this cannot be decided; see [Pod.Unclear].
	Undecided Obstacle = "Undecided"
	// Full: requests, or the number of pods.
	Full Obstacle = "Full"
	// Elsewhere: the pod's node selector or required node affinity.
	Elsewhere Obstacle = "Elsewhere"
	// Tainted: a taint that the pod does not tolerate, or cordoning.
	Tainted Obstacle = "Tainted"
	// VolumeElsewhere: a volume that cannot be used there.
	VolumeElsewhere Obstacle = "VolumeElsewhere"
	// PortTaken: a host port.
	PortTaken Obstacle = "PortTaken"
	// Lonely: pods that it must be together with are not there.
	Lonely Obstacle = "Lonely"
	// Repelled: anti-affinity, its own or that of pods that are there.
	Repelled Obstacle = "Repelled"
	// Uneven: the place would have too many of its kind, or the node has no such label.
	Uneven Obstacle = "Uneven"
)

// On answers for a node as if no pod were there, and no other node: what it is, not what is left. Taints under any of the
// keys given count as gone. Pod affinity and topology spread are not looked at, since they are about other pods.
func On(p *Pod, node *corev1.Node, without ...string) Obstacle {
	free := stockOf(node.Status.Allocatable)
	if p.Unclear == "" && !free.fits(p.needs) {
		return Full
	}
	return Suits(p, node, without...)
}

// Suits is [On] for a node with room for everything.
func Suits(p *Pod, node *corev1.Node, without ...string) Obstacle {
	if p.Unclear != "" {
		return Undecided
	}
	return p.obstacleOn(node, lasting(taintsOf(node), without))
}

// obstacleOn returns what the node itself has against the pod, whatever runs there.
func (p *Pod) obstacleOn(node *corev1.Node, taints []corev1.Taint) Obstacle {
	if ok, err := p.required.Match(node); !ok || err != nil {
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
	return Fits
}
