// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"context"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// A kubelet registers its Node with the taints that its bootstrap configuration names, and that cannot know
// whether the Machine is in reserve. If all Nodes register with the registration taint, no pod is bound before
// this is known, also while no manager runs.

// strangerPatience is how long a Node that no Machine names is kept closed. Providers name the Node of a
// Machine before it registers, or a moment later.
const strangerPatience = 2 * time.Minute

// addRegistered queues a Node that has the registration taint.
func (c *Controller) addRegistered(node *corev1.Node) {
	if node != nil && c.nodeClient != nil && slices.ContainsFunc(node.Spec.Taints, isRegistrationTaint) {
		c.loop.Add(key{nodeKind, "", node.Name}.String())
	}
}

func isRegistrationTaint(t corev1.Taint) bool { return t.Key == machine.RegistrationTaintKey }

// admit replaces the registration taint of a Node by the reserve taint, or removes it if its machine serves.
func (c *Controller) admit(ctx context.Context, name string) (again time.Duration, err error) {
	shown := stores.Find[corev1.Node](c.nodes, name)
	if shown == nil {
		return 0, nil
	}
	node := c.writtenNodes.Newest(shown)
	after := node.DeepCopy()
	after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, isRegistrationTaint)
	if len(after.Spec.Taints) == len(node.Spec.Taints) {
		return 0, nil
	}
	switch m := c.machineOf(node); {
	case m == nil:
		if left := strangerPatience - c.memory.strangerFor(node.UID, c.clock.Now()); left > 0 {
			return left, nil
		}
		klog.FromContext(ctx).Info("Removing the registration taint of a node that no machine names", "node", name)
	case pool.Marked(m) && !pool.HasReserveTaint(after.Spec.Taints):
		pool.AddReserveTaint(after)
	}
	if err := newApplication(c, plan.View{}).changeNode(ctx, plan.NodeChange{Before: node, After: after}); err != nil {
		return 0, err
	}
	c.memory.forgetStranger(node.UID)
	return 0, nil
}

// machineOf returns the Machine of a Node as last written; nil if none names it.
func (c *Controller) machineOf(node *corev1.Node) *mcm.Machine {
	for _, m := range stores.Indexed[*mcm.Machine](c.machines, stores.ByNode, node.Name) {
		if pool.IsNodeOf(m, node) {
			return c.writtenMachines.Newest(m)
		}
	}
	return nil
}
