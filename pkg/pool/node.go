// SPDX-License-Identifier: Apache-2.0

package pool

import (
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

// NodeReady reports whether a Node says that it is ready.
func NodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
