// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// template returns a fresh Node of a group, false if no template is known.
func (m *memory) template(g Group, reserved corev1.ResourceList) (*corev1.Node, bool) {
	own := m.model(g)
	var others []Model
	if own.Node == nil {
		for _, other := range m.groups() {
			others = append(others, m.model(other))
		}
	}
	return NewTemplate(own, others, reserved)
}

func (m *memory) model(g Group) Model {
	template := g.Deployment.Spec.Template.Spec
	model := Model{Group: g.Deployment.Name, Extra: template.NodeTemplateSpec, Node: m.example(g)}
	if class := m.source.Class(m.namespace, template.Class.Name); class != nil {
		model.Class = class.NodeTemplate
	}
	return model
}

// example returns a Node of a group's present class that can serve as a template: the most recently changed one, otherwise the oldest.
func (m *memory) example(g Group) *corev1.Node {
	class, now := g.Deployment.Spec.Template.Spec.Class.Name, m.clock.Now()
	if node := m.shown.of(g.Deployment.Name, class); node != nil {
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

// remember keeps a Node as the template of its group, for the time when the group has no Node.
func (m *memory) remember(o any) {
	node, ok := o.(*corev1.Node)
	if !ok || !(similar.Candidate{Node: node}).Fit(m.clock.Now()) {
		return
	}
	machine, err := m.machine(node.Spec.ProviderID, node.Name)
	if machine == nil || err != nil || pool.Marked(machine) {
		return
	}
	if g, err := m.home(machine); err == nil {
		m.shown.note(g.Deployment.Name, model{node, machine.Spec.Class.Name})
	}
}

// watch remembers names when they leave the annotation, and templates.
func (m *memory) watch(deployments, nodes cache.SharedIndexInformer) error {
	if _, err := deployments.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, _ any) {
			if d, ok := before.(*v1alpha1.MachineDeployment); ok {
				m.named.note(signs.Named(d), m.clock.Now()) // those that it no longer names
			}
		},
	}); err != nil {
		return err
	}
	_, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: m.remember, UpdateFunc: func(before, after any) { m.remember(before); m.remember(after) },
	})
	return err
}
