// SPDX-License-Identifier: Apache-2.0

package signs

import (
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// IsNodeOf reports whether a Node is that of a Machine: the Machine names it, and their provider ids do not contradict that. A name
// alone does not decide. Where names come from addresses, a machine may have the name of one that is gone, whose Machine is still there.
func IsNodeOf(m *mcm.Machine, n *corev1.Node) bool {
	return n.Name == m.Labels[mcm.NodeLabelKey] && !DifferentInstances(m.Spec.ProviderID, n.Spec.ProviderID)
}

// DifferentInstances reports whether two provider ids belong to different machines. An id that is not known yet contradicts nothing,
// and ids of different schemes cannot be compared.
func DifferentInstances(a, b string) bool {
	return a != "" && b != "" && scheme(a) == scheme(b) && InstanceID(a) != InstanceID(b)
}

// InstanceID returns the last part of a provider id, which names the machine to its cloud. The rest may differ between a Machine and
// its Node: on AWS the Machine's has the region where the Node's has the zone.
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
