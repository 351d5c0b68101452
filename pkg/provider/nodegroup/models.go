// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// template returns a fresh Node of a group, false if no template is known.
func (m *memory) template(g plan.Group, reserved corev1.ResourceList) (*corev1.Node, bool) {
	own := m.modelOf(g)
	var others []plan.Model
	if own.Node == nil {
		for _, other := range m.allGroups() {
			others = append(others, m.modelOf(other))
		}
	}
	return plan.NewTemplate(own, others, reserved)
}

func (m *memory) modelOf(g plan.Group) plan.Model {
	template := g.Deployment.Spec.Template.Spec
	model := plan.Model{Group: g.Deployment.Name, Extra: template.NodeTemplateSpec, Node: m.exampleNode(g)}
	if class := m.source.Class(m.namespace, template.Class.Name); class != nil {
		model.Class = class.NodeTemplate
	}
	return model
}

// exampleNode returns a Node of a group's present class that can serve as a template: the most
// recently changed one, otherwise the oldest.
func (m *memory) exampleNode(g plan.Group) *corev1.Node {
	class, now := g.Deployment.Spec.Template.Spec.Class.Name, m.clock.Now()
	if node := m.lastNodes.nodeOf(g.Deployment.Name, class); node != nil {
		return node
	}
	var fit []*corev1.Node
	for _, machine := range m.outline(g).Machines {
		if machine.Node != nil && machine.Object.Spec.Class.Name == class && (similar.Candidate{Node: machine.Node, Reserve: machine.Marked()}).Fit(now) {
			fit = append(fit, machine.Node)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return slices.MinFunc(fit, func(a, b *corev1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// rememberNode keeps a Node as the template of its group, for the time when the group has no Node.
func (m *memory) rememberNode(o any) {
	node, ok := o.(*corev1.Node)
	if !ok || !(similar.Candidate{Node: node}).Fit(m.clock.Now()) {
		return
	}
	machine, err := m.findMachine(node.Spec.ProviderID, node.Name)
	if machine == nil || err != nil || pool.Marked(machine) {
		return
	}
	if g, err := m.groupOf(machine); err == nil {
		m.lastNodes.remember(g.Deployment.Name, templateNode{node, machine.Spec.Class.Name})
	}
}

// addHandlers remembers names when they leave the annotation, and Nodes that can serve as
// templates.
func (m *memory) addHandlers(deployments, nodes cache.SharedIndexInformer) error {
	if _, err := deployments.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, _ any) {
			if d, ok := before.(*v1alpha1.MachineDeployment); ok {
				m.recentNames.addNames(pool.Named(d), m.clock.Now()) // those that it no longer names
			}
		},
	}); err != nil {
		return err
	}
	_, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: m.rememberNode, UpdateFunc: func(before, after any) { m.rememberNode(before); m.rememberNode(after) },
	})
	return err
}
