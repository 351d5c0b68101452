// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/similar"
)

// SampleNode returns what the Node of a new machine would look like: like an existing Node,
// otherwise as the MachineClass describes it, or nil.
func SampleNode(s Snapshot) *corev1.Node {
	if s.Sample != nil && !s.Sample.Spec.Unschedulable {
		return withoutPassing(s.Sample)
	}
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
	return node
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
