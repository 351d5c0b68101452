// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"cmp"
	"maps"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

func (c *Controller) add(k key) { c.loop.AddAfter(k.String(), gather) }

// deploymentChanged queues a MachineDeployment, those that may adopt a MachineSet instead of it, and
// MachineSets that were its own or may become so.
func (c *Controller) deploymentChanged(was, is any) {
	d, ok := cmp.Or(is, was).(*machine.MachineDeployment)
	if !ok {
		return
	}
	c.add(key{deploymentKind, d.Namespace, d.Name})
	for _, set := range stores.Indexed[*mcm.MachineSet](c.sets, stores.Orphans, d.Namespace) {
		c.orphanSetChanged(set)
	}
	before, _ := was.(*machine.MachineDeployment)
	after, _ := is.(*machine.MachineDeployment)
	c.replicasChanged(before, after)
	if before != nil && after != nil {
		return
	}
	for _, set := range stores.Indexed[*mcm.MachineSet](c.sets, stores.ByOwner, string(d.UID)) {
		c.add(c.keyOf(set))
	}
}

// replicasChanged releases machines as soon as replicas have grown. The first and the last replicas of a
// MachineDeployment decide about the reserves of all others of its namespace: see [Controller.allLeaving].
func (c *Controller) replicasChanged(before, after *machine.MachineDeployment) {
	was, is := int32(0), int32(0)
	if before != nil {
		was = before.Spec.Replicas
	}
	if after != nil {
		is = after.Spec.Replicas
	} else {
		c.reserves.remember(before.UID, nil)
	}
	if before != nil && after != nil && was < is {
		c.loop.Add(key{releaseKind, after.Namespace, after.Name}.String())
	}
	if (was > 0) == (is > 0) {
		return
	}
	namespace := cmp.Or(after, before).Namespace
	for d := range stores.All[*machine.MachineDeployment](c.deployments) {
		if d.Namespace == namespace {
			c.add(key{deploymentKind, d.Namespace, d.Name})
		}
	}
}

// classChanged queues the MachineDeployments of a MachineClass, which says how much a machine has.
func (c *Controller) classChanged(was, is any) {
	class, ok := cmp.Or(is, was).(*mcm.MachineClass)
	if !ok {
		return
	}
	for d := range stores.All[*machine.MachineDeployment](c.deployments) {
		if d.Namespace == class.Namespace && d.Spec.Template.Spec.Class.Name == class.Name {
			c.add(key{deploymentKind, d.Namespace, d.Name})
		}
	}
}

func (c *Controller) setChanged(was, is any) {
	for _, item := range []any{was, is} {
		if set, ok := item.(*mcm.MachineSet); ok {
			c.add(c.keyOf(set))
			c.orphanSetChanged(set)
		}
	}
	if gone, ok := was.(*mcm.MachineSet); ok && is == nil {
		c.memory.forgetSet(gone.UID)
	}
}

// orphanSetChanged queues the MachineDeployments that may adopt a MachineSet.
func (c *Controller) orphanSetChanged(set *mcm.MachineSet) {
	if metav1.GetControllerOfNoCopy(set) != nil {
		return
	}
	for d := range stores.All[*machine.MachineDeployment](c.deployments) {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if d.Namespace == set.Namespace && err == nil && selector.Matches(labels.Set(set.Labels)) {
			c.add(key{deploymentKind, d.Namespace, d.Name})
		}
	}
}

// machineChanged queues the MachineSet of a machine, the one that it belonged to before, and those
// that may adopt it.
func (c *Controller) machineChanged(was, is any) {
	before, _ := was.(*mcm.Machine)
	after, _ := is.(*mcm.Machine)
	for _, m := range []*mcm.Machine{before, after} {
		if m == nil {
			continue
		}
		c.addSetOf(m)
	}
	if after == nil && before != nil {
		c.memory.forgetGone(before.UID)
	}
	if after != nil && (before == nil || before.Labels[mcm.NodeLabelKey] != after.Labels[mcm.NodeLabelKey]) {
		c.addRegistered(stores.Find[corev1.Node](c.nodes, after.Labels[mcm.NodeLabelKey]))
	}
	if after == nil || metav1.GetControllerOfNoCopy(after) != nil {
		return
	}
	if before == nil || !maps.Equal(before.Labels, after.Labels) || metav1.GetControllerOfNoCopy(before) != nil {
		c.orphanChanged(after)
	}
}

// orphanChanged queues the MachineSets that may adopt a machine.
func (c *Controller) orphanChanged(m *mcm.Machine) {
	for set := range stores.All[*mcm.MachineSet](c.sets) {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if set.Namespace == m.Namespace && err == nil && selector.Matches(labels.Set(m.Labels)) {
			c.add(c.keyOf(set))
		}
	}
}

// nodeChanged queues the MachineDeployment of a Node in which something changes that decides: not if only its
// kubelet says how it is.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before != nil && after == nil {
		c.memory.forgetNode(before.Name)
		c.memory.forgetStranger(before.UID)
	}
	c.addRegistered(after)
	if before != nil && after != nil && sameNode(before, after) {
		return
	}
	for _, node := range []*corev1.Node{before, after} {
		if node != nil {
			c.addNode(node.Name)
		}
	}
}

// devicesChanged queues the MachineDeployment of a Node whose devices have changed, or all that name
// devices.
func (c *Controller) devicesChanged(node string) {
	if node != "" {
		c.addNode(node)
		return
	}
	for d := range stores.All[*machine.MachineDeployment](c.deployments) {
		if len(pool.DeviceClasses(d)) > 0 {
			c.add(key{deploymentKind, d.Namespace, d.Name})
		}
	}
}

// sameNode reports whether two versions of a Node lead to the same plan.
func sameNode(a, b *corev1.Node) bool {
	return slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, fit.SameTaint) &&
		equality.Semantic.DeepEqual(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Labels, b.Labels) && plan.SameUpdate(a, b) &&
		a.Spec.ProviderID == b.Spec.ProviderID && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		pool.NodeReady(a) == pool.NodeReady(b) && equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable)
}

// podChanged queues the MachineDeployment of a Node that may have become busy or empty, or whose pods may
// be evicted now.
func (c *Controller) podChanged(was, is any) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	from, to := busyNode(before), busyNode(after)
	if from == to && (to == "" || c.pin(before) == c.pin(after)) {
		return
	}
	for _, node := range []string{from, to} {
		if node != "" {
			c.addNode(node)
		}
	}
}

// pin returns why a pod must not be evicted, as far as that does not depend on budgets.
func (c *Controller) pin(pod *corev1.Pod) string {
	return pool.NewEvictor(c.reserves.settings.Eviction, nil, "", c.clock.Now()).WhyNot(pod)
}

// busyNode returns the Node that a pod makes busy; empty if the pod does not count.
func busyNode(pod *corev1.Pod) string {
	if pod == nil || !pool.IsWorkload(pod) {
		return ""
	}
	return pod.Spec.NodeName
}

// addNode queues the MachineDeployments whose machines have a Node.
func (c *Controller) addNode(node string) {
	for _, m := range stores.Indexed[*mcm.Machine](c.machines, stores.ByNode, node) {
		c.addSetOf(m)
	}
}

// addSetOf queues the MachineSet of a machine.
func (c *Controller) addSetOf(m *mcm.Machine) {
	if set := stores.Controller[mcm.MachineSet](c.sets, m); set != nil {
		c.add(c.keyOf(set))
	}
}
