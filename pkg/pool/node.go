// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// Instance is the last part of a provider id, which names the machine to its cloud. The rest may differ between Machine and
// Node: on AWS the Machine's has the region where the Node's has the zone.
func Instance(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// NodeOf is the Node of a Machine, nil until it has registered. A Node that has the provider id of another Machine is that one's,
// whatever its name.
func NodeOf(m *mcm.Machine, source Source) *corev1.Node {
	name := m.Labels[mcm.NodeLabelKey]
	if name == "" {
		return nil
	}
	node := source.Node(name)
	if node == nil {
		return nil
	}
	instance := Instance(node.Spec.ProviderID)
	if instance == "" || instance == Instance(m.Spec.ProviderID) || len(source.Instances(instance)) == 0 {
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
