// SPDX-License-Identifier: Apache-2.0

package release

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// nominatedPods returns the pods that wait for a node that they are nominated for.
func (c *Controller) nominatedPods() []*corev1.Pod {
	return stores.Indexed[*corev1.Pod](c.stores.pods, target.ByPlacement, target.Nominated)
}

// withoutVoid returns a pod without a nomination that means nothing: its node is gone, in reserve,
// or taken. A machine that was to leave the reserve for it may stay there, because replicas have
// changed.
func (c *Controller) withoutVoid(pod *corev1.Pod) *corev1.Pod {
	if pod.Status.NominatedNodeName == "" || pod.Spec.NodeName != "" {
		return pod
	}
	if node := c.openNode(pod); node != nil && !c.isCrowdedOut(pod, node) {
		return pod
	}
	return withoutNomination(pod)
}

func withoutNomination(pod *corev1.Pod) *corev1.Pod {
	free := *pod
	free.Status.NominatedNodeName = ""
	return &free
}

// openNode returns the node that a pod is nominated for, nil if it is gone or in reserve.
func (c *Controller) openNode(pod *corev1.Pod) *corev1.Node {
	node := stores.Find[corev1.Node](c.stores.nodes, pod.Status.NominatedNodeName)
	if node == nil || pool.HasReserveTaint(node.Spec.Taints) {
		return nil
	}
	return node
}

// isCrowdedOut reports whether others keep a pod from the node that it is nominated for.
func (c *Controller) isCrowdedOut(pod *corev1.Pod, node *corev1.Node) bool {
	running := stores.Indexed[*corev1.Pod](c.stores.pods, stores.ByNode, node.Name)
	return plan.IsCrowdedOut(pod, node, running, c.nominatedPods(), c.podCache.podFor)
}

// crowdedOut returns a withdrawal for each pod that counts and is crowded out.
func (c *Controller) crowdedOut() (all []plan.Nomination) {
	for _, pod := range c.nominatedPods() {
		counts, _ := c.settings.Evaluate(withoutNomination(pod))
		if node := c.openNode(pod); counts && node != nil && c.isCrowdedOut(pod, node) {
			all = append(all, plan.Nomination{Pod: c.podCache.podFor(pod)})
		}
	}
	return all
}
