// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// IsNodeOf reports whether a Node belongs to a Machine: the Machine names it, and their provider
// ids do not contradict that. The name alone is not enough. If names are derived from addresses, a
// new machine may have the name of a deleted one whose Machine still exists.
func IsNodeOf(m *mcm.Machine, n *corev1.Node) bool {
	return n.Name == m.Labels[mcm.NodeLabelKey] && !DifferentInstances(m.Spec.ProviderID, n.Spec.ProviderID)
}

// DifferentInstances reports whether two provider ids belong to different machines. An unknown id
// contradicts nothing, and ids with different schemes cannot be compared.
func DifferentInstances(a, b string) bool {
	return a != "" && b != "" && scheme(a) == scheme(b) && InstanceID(a) != InstanceID(b)
}

// InstanceID returns the last part of a provider id, which identifies the machine in its cloud. The
// rest may differ between a Machine and its Node: on AWS, the Machine's id contains the region, and
// the Node's the zone.
func InstanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

func scheme(providerID string) string {
	before, _, found := strings.Cut(providerID, "://")
	if !found {
		return ""
	}
	return before
}
