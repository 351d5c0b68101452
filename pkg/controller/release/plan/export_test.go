// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// BySorting sorts all pods, and then takes as many as the limit allows.
func BySorting(pods []*corev1.Pod, limit int) []*corev1.Pod {
	pods = slices.SortedFunc(slices.Values(pods), byImportance)
	taken, _ := TakeFairly(pods, func(p *corev1.Pod) string { return p.Namespace }, limit)
	return taken
}
