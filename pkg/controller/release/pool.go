// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/signs"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// material is all that belongs to one MachineDeployment.
type material struct {
	deployment *v1alpha1.MachineDeployment
	bounds     v1alpha1.Bounds
	current    string
	machines   map[string][]*mcm.Machine // by MachineSet
	nodes      map[string]*corev1.Node   // by Machine
	class      *mcm.MachineClass
}

func (c *Controller) materialOf(d *v1alpha1.MachineDeployment, bounds v1alpha1.Bounds) material {
	m := material{deployment: d, bounds: bounds, machines: map[string][]*mcm.Machine{}, nodes: map[string]*corev1.Node{}}
	sets := indexed[*mcm.MachineSet](c.stores.sets, byOwner, string(d.UID))
	staying := map[string]int{}
	for _, set := range sets {
		machines := indexed[*mcm.Machine](c.stores.machines, byOwner, string(set.UID))
		m.machines[set.Name] = machines
		for _, machine := range machines {
			if node := find[corev1.Node](c.stores.nodes, machine.Labels[mcm.NodeLabelKey]); node != nil && signs.IsNodeOf(machine, node) {
				m.nodes[machine.Name] = node
			}
			if machine.DeletionTimestamp == nil {
				staying[set.Name]++
			}
		}
	}
	m.current = pool.RolloutOf(d, sets, staying).Set
	m.class = find[mcm.MachineClass](c.stores.machineClasses, d.Namespace+"/"+d.Spec.Template.Spec.Class.Name)
	return m
}

// pool says what a decision needs to know of a MachineDeployment.
func (m material) pool(now time.Time) Pool {
	d := m.deployment
	p := Pool{
		Key: d.Namespace + "/" + d.Name, Basis: Basis{UID: d.UID, Generation: d.Generation, Bounds: d.Annotations[v1alpha1.BoundsAnnotation]},
		Replicas: max(0, int(d.Spec.Replicas)), Max: int(m.bounds.Max), NodeOf: map[string]string{},
	}
	if text, set := d.Annotations[v1alpha1.AppliedReplicasAnnotation]; set {
		p.Basis.Applied = &text
		if _, valid := pool.AppliedReplicas(d); valid {
			p.Applied = ptr.To(pool.Workload(d, d.Spec.Replicas))
		}
	}
	p.Reserve = reserve.View{Max: p.Max, CurrentSet: m.current, Now: now, Applied: reserve.AppliedOf(d.Annotations)}
	p.Reserve.Wish = p.Reserve.Applied.Excess
	named := signs.Named(d)
	for set, machines := range m.machines {
		for _, machine := range machines {
			p.Reserve.Machines = append(p.Reserve.Machines, plain(machine, set, named, now))
			if node := m.nodes[machine.Name]; node != nil {
				p.NodeOf[machine.Name] = node.Name
			}
		}
	}
	p.Reserve.Wanted = len(p.Reserve.Machines)
	p.Sample = m.sample()
	return p
}

// plain is a machine as the rule of the reserve has it, as far as that matters here.
func plain(o *mcm.Machine, set string, named map[string]time.Time, now time.Time) reserve.Machine {
	priority := signs.Priority(o)
	_, failing := signs.Failure(o)
	_, isNamed := named[o.Name]
	expiry := o.Status.CurrentStatus.PreserveExpiryTime
	return reserve.Machine{
		Name: o.Name, Born: o.CreationTimestamp.Time, Phase: o.Status.CurrentStatus.Phase, Set: set,
		Reserve: o.Annotations[v1alpha1.ReserveAnnotation] != "", Made: o.Spec.ProviderID != "",
		Failing:  failing,
		Priority: priority, SeenPriority: priority,
		Named:     isNamed || signs.Condemned(o),
		Deleted:   o.DeletionTimestamp != nil,
		Returned:  true, // what is given back is for others to decide
		Preserved: expiry != nil && expiry.After(now),
	}
}

// sample is what a new machine's Node would look like: like one of the current template that is ready, else what the
// MachineClass promises.
func (m material) sample() *corev1.Node {
	var best *corev1.Node
	for _, machine := range m.machines[m.current] {
		if node := m.nodes[machine.Name]; node != nil && isReady(node) && !node.Spec.Unschedulable &&
			(best == nil || node.Name < best.Name) {
			best = node
		}
	}
	if best != nil || m.class == nil {
		return best
	}
	template := m.deployment.Spec.Template.Spec.NodeTemplateSpec
	t, ok := similar.FromClass(m.deployment.Name, m.class.NodeTemplate, template.Labels)
	if !ok {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels}, Spec: corev1.NodeSpec{Taints: template.Spec.Taints}}
	node.Labels[corev1.LabelHostname] = ""
	node.Status.Capacity, node.Status.Allocatable = t.Capacity, t.Allocatable
	return node
}
