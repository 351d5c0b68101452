// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// observe gathers the view of a MachineDeployment. It is false where there is nothing to decide: it is gone or going,
// or the store does not yet show what we wrote of it, and its event will bring the next look. Machines and Nodes are taken
// as we were answered where the store is behind that. Most MachineDeployments of most clusters have no reserve, and every
// change of theirs comes here: for them no more is gathered than shows that.
func (c *Controller) observe(key string) (View, bool) {
	shown, found := c.stores.deployment(key)
	if !found || shown.DeletionTimestamp != nil {
		c.forget(key)
		c.written.Forget(key)
		gone := &v1alpha1.MachineDeployment{}
		gone.Namespace, gone.Name, _ = strings.Cut(key, "/")
		c.told.Forget(gone)
		return View{}, false
	}
	d := c.told.Newest(shown)
	if !c.written.Seen(key, d.ResourceVersion) {
		return View{}, false
	}
	if d == shown {
		c.settle(key, d)
	}
	v := View{Now: c.clock.Now(), Settings: c.settings, Deployment: d}
	v.Memory, v.Pruned = c.memory(key)
	sets := owned[*mcm.MachineSet](c.stores.sets, d)
	for _, set := range sets {
		for _, m := range owned[*mcm.Machine](c.stores.machines, set) {
			v.Machines = append(v.Machines, c.machine(set, c.machines.Newest(m)))
		}
	}
	slices.SortFunc(v.Machines, func(a, b Machine) int { return strings.Compare(a.Object.Name, b.Object.Name) })
	if idle(v, wishOf(v)) {
		return v, true
	}
	c.populate(v.Machines)
	v.CurrentSet, v.Rollout = rollout(d, sets, v.Machines)
	v.Wanted, v.Behind = c.seen(d, v.Machines)
	v.Allocatable = c.allocatable(v)
	v.Unreachable, v.Unhealthy = c.unreachable(), c.unhealthy()
	return v, true
}

// memory is what is known of a MachineDeployment, and whether the API server drops spec.excessReplicas.
func (c *Controller) memory(key string) (m Memory, pruned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memories[key], c.pruned
}

// settle takes note of what the store shows of a MachineDeployment that we wrote.
func (c *Controller) settle(key string, d *v1alpha1.MachineDeployment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.latest, key)
	if d.Spec.ExcessReplicas != nil {
		c.pruned = false
	}
}

// machine gathers what belongs to one.
func (c *Controller) machine(set *mcm.MachineSet, m *mcm.Machine) Machine {
	machine := Machine{Object: m, Set: set.Name, SeenPriority: signs.Priority(m)}
	if seen, found := find[*mcm.Machine](c.stores.seenMachines, m.Namespace+"/"+m.Name); found {
		machine.SeenPriority = signs.Priority(seen)
	}
	node, found := c.named(m)
	if found && signs.IsNodeOf(m, node) {
		machine.Node = c.nodes.Newest(node)
	} else {
		machine.blind()
	}
	return machine
}

// named is the Node that a Machine names. It may be another machine's by now; see [signs.IsNodeOf].
func (c *Controller) named(m *mcm.Machine) (*corev1.Node, bool) {
	if c.stores.nodes == nil {
		return nil, false
	}
	return find[*corev1.Node](c.stores.nodes, m.Labels[mcm.NodeLabelKey])
}

// unreachable says in which way the target cluster does not answer, or has yet to show what happened meanwhile.
func (c *Controller) unreachable() string {
	if c.stores.nodes == nil {
		return ""
	}
	if err := c.cluster.Err(c.stores.nodes, c.stores.pods); err != nil {
		return err.Error()
	}
	return ""
}

// unhealthy reports whether many Nodes of the target cluster are not ready, whoever they belong to.
func (c *Controller) unhealthy() bool {
	if c.stores.nodes == nil {
		return false
	}
	unready, _ := c.stores.nodes.IndexKeys(byReadiness, unreadyNode) // the index is there
	return signs.Unhealthy(len(unready), len(c.stores.nodes.ListKeys()))
}

// populate counts the pods on each machine.
func (c *Controller) populate(machines []Machine) {
	for i := range machines {
		if m := &machines[i]; m.Node != nil {
			c.countPods(m)
		}
	}
}

// blind counts a machine as busy whose pods cannot be seen, unless it cannot have any.
func (m *Machine) blind() {
	if phase := m.Object.Status.CurrentStatus.Phase; phase == mcm.MachineRunning || phase == mcm.MachineUnknown {
		m.Pods = 1
	}
}

// countPods counts the pods that make a machine busy, and those of them that do not tolerate the taint or must not be evicted.
func (c *Controller) countPods(m *Machine) {
	items, _ := c.stores.pods.ByIndex(byNode, m.Node.Name) // the index is there
	for _, item := range items {
		pod, ok := item.(*corev1.Pod)
		if !ok || !counts(pod) {
			continue
		}
		m.Pods++
		m.Pinned = m.Pinned || signs.PinOf(pod) != signs.Unpinned
		if !tolerates(pod, c.settings.Taints()) {
			m.Strangers++
		}
	}
}

func tolerates(pod *corev1.Pod, taints []corev1.Taint) bool {
	for _, taint := range taints {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) }) {
			return false
		}
	}
	return true
}

// rollout finds the MachineSet that counts as the current one, and whether machines of others are being replaced.
func rollout(d *v1alpha1.MachineDeployment, sets []*mcm.MachineSet, machines []Machine) (current string, replacing bool) {
	staying := map[string]int{}
	for _, m := range machines {
		if m.Object.DeletionTimestamp == nil {
			staying[m.Set]++
		}
	}
	r := pool.RolloutOf(d, sets, staying)
	return r.Set, r.Replacing
}

// seen compares with what machine-controller-manager has seen.
func (c *Controller) seen(d *v1alpha1.MachineDeployment, machines []Machine) (wanted int, behind bool) {
	there := map[types.UID]bool{}
	for _, set := range owned[*mcm.MachineSet](c.stores.seenSets, d) {
		wanted += c.wanted(set)
		for _, m := range owned[*mcm.Machine](c.stores.seenMachines, set) {
			there[m.UID] = going(m)
		}
	}
	here := map[types.UID]bool{}
	for _, m := range machines {
		here[m.Object.UID] = going(m.Object)
	}
	return wanted, !maps.Equal(there, here)
}

func going(m *mcm.Machine) bool {
	return m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == mcm.MachineTerminating
}

// allocatable is what one machine has for pods: what a ready Node of the pool says, else what the MachineClass promises.
func (c *Controller) allocatable(v View) corev1.ResourceList {
	for _, m := range v.Machines {
		if m.Node != nil && ready(m.Node) && m.Set == v.CurrentSet {
			return m.Node.Status.Allocatable
		}
	}
	class, found := find[*mcm.MachineClass](c.stores.classes, v.Deployment.Namespace+"/"+v.Deployment.Spec.Template.Spec.Class.Name)
	if !found || class.NodeTemplate == nil {
		return nil
	}
	all := maps.Clone(class.NodeTemplate.Capacity)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, class.NodeTemplate.VirtualCapacity)
	return all
}
