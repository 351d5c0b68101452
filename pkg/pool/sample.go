// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/pkg/similar"
)

// SampleNode returns what the Node of a new machine would look like: like an existing Node,
// otherwise as the MachineClass describes it, or nil.
func SampleNode(s Snapshot) *corev1.Node {
	if s.Sample == nil || s.Sample.Spec.Unschedulable {
		return describedNode(s)
	}
	node := withoutPassing(s.Sample)
	if (similar.Candidate{Node: node}).Fit(s.Now) {
		return node
	}
	complete := *node
	complete.Status.Allocatable = withDevices(node.Status.Allocatable, s.described())
	return &complete
}

// NodeLike returns a Node that has the same room for pods as a sample, and a name of its own.
func NodeLike(sample *corev1.Node, name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(sample.Labels)}, Spec: corev1.NodeSpec{Taints: sample.Spec.Taints}, Status: sample.Status}
	if _, ok := n.Labels[corev1.LabelHostname]; ok {
		n.Labels[corev1.LabelHostname] = name
	}
	return n
}

// described returns what the MachineClass says that a machine offers; nil if it says nothing.
func (s *Snapshot) described() corev1.ResourceList {
	if s.Class == nil || s.Class.NodeTemplate == nil {
		return nil
	}
	return similar.ClassCapacity(s.Class.NodeTemplate)
}

// describedNode returns a Node as the MachineClass describes it, nil if it does not.
func describedNode(s Snapshot) *corev1.Node {
	if s.Class == nil {
		return nil
	}
	template := s.Deployment.Spec.Template.Spec.NodeTemplateSpec
	t, ok := similar.FromClass(s.Deployment.Name, s.Class.NodeTemplate, template.Labels)
	if !ok {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels}, Spec: corev1.NodeSpec{Taints: template.Spec.Taints}}
	node.Labels[corev1.LabelHostname] = ""
	node.Status.Capacity, node.Status.Allocatable = t.Capacity, t.Allocatable
	if replaced := s.replaced(); replaced != nil {
		node.Labels = labels.Merge(addedLabels(replaced), node.Labels)
		node.Status.Capacity = withDevices(replaced.Node.Status.Capacity, t.Capacity)
		node.Status.Allocatable = withDevices(replaced.Node.Status.Allocatable, t.Allocatable)
	}
	return node
}

// addedLabels returns the labels of a machine's Node that are not of its template: that may have some
// which new machines do not get.
func addedLabels(m *Machine) labels.Set {
	added := maps.Clone(m.Node.Labels)
	maps.DeleteFunc(added, func(key, _ string) bool {
		_, own := m.Object.Spec.NodeTemplateSpec.Labels[key]
		return own
	})
	return added
}

// replaced returns a machine of an older template with the machine type of the MachineClass and a ready
// Node; nil if there is none. It shows what a MachineClass does not: what the kubelet keeps for itself,
// and the labels that other components add.
func (s *Snapshot) replaced() *Machine {
	for i, m := range s.Machines {
		if kind := s.Class.NodeTemplate.InstanceType; kind != "" && m.Node != nil && m.Set != s.Rollout.Set && NodeReady(m.Node) && m.Node.Labels[corev1.LabelInstanceTypeStable] == kind {
			return &s.Machines[i]
		}
	}
	return nil
}

// withDevices adds the described resources that a Node does not offer. Device plugins start a while
// after the kubelet, and those that do not tolerate the reserve taint only when the machine serves.
func withDevices(offered, described corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	maps.Copy(all, offered)
	for name, amount := range described {
		if has := offered[name]; has.IsZero() {
			all[name] = amount
		}
	}
	return all
}

// withoutPassing returns a Node without the taints that a new machine does not keep: with them, no
// pod would fit new machines while an autoscaler drains this Node.
func withoutPassing(node *corev1.Node) *corev1.Node {
	if !slices.ContainsFunc(node.Spec.Taints, similar.Passing) {
		return node
	}
	fresh := *node
	fresh.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), similar.Passing)
	return &fresh
}

// LeastAmounts returns the resources that all machines offer, and the least of each. A list that is
// nil is not known, and does not count; the result is nil if none is known.
func LeastAmounts(all []corev1.ResourceList) corev1.ResourceList {
	var least corev1.ResourceList
	for _, amounts := range all {
		switch {
		case amounts == nil:
		case least == nil:
			least = amounts.DeepCopy()
		default:
			lowerAmounts(least, amounts)
		}
	}
	return least
}

// lowerAmounts lowers amounts to those of another machine, and drops resources that it lacks.
func lowerAmounts(least, other corev1.ResourceList) {
	for name, has := range least {
		switch q, known := other[name]; {
		case !known:
			delete(least, name)
		case q.Cmp(has) < 0:
			least[name] = q
		}
	}
}
