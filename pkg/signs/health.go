// SPDX-License-Identifier: Apache-2.0

package signs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A cluster is unhealthy where more Nodes than both of these are not ready, as cluster-autoscaler had it in version 0.5.
const (
	toleratedUnready        = 3
	toleratedUnreadyPercent = 33
)

// Unhealthy reports whether so many of a cluster's Nodes are not ready that none of our decisions may evict a pod: its replacement
// may find no place, and what ails the Nodes may ail those to come.
func Unhealthy(unready, nodes int) bool {
	return unready > toleratedUnready && unready*100 > nodes*toleratedUnreadyPercent
}

// Unready reports whether a Node's Ready condition is False or Unknown. A Node without the condition is new, and not a sign of
// trouble.
func Unready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}
