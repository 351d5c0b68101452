// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/signs"
)

// NodeOf is the Node of a Machine, nil until it has registered; see [signs.IsNodeOf].
func NodeOf(m *mcm.Machine, source Source) *corev1.Node {
	name := m.Labels[mcm.NodeLabelKey]
	if name == "" {
		return nil
	}
	if node := source.Node(name); node != nil && signs.IsNodeOf(m, node) {
		return node
	}
	return nil
}

// NodeReady reports whether pods can be bound to a Node. One that has just become ready is tainted for a moment longer.
func NodeReady(n *corev1.Node) bool {
	tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	return !tainted && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
