// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A cluster is unhealthy if more Nodes than both of these are not ready. cluster-autoscaler 0.5 had
// the same limits.
const (
	toleratedUnready        = 3
	toleratedUnreadyPercent = 33
)

// TooManyUnready reports whether so many of a cluster's Nodes are not ready that no pod should be
// evicted: its replacement may find no place, and new Nodes may have the same problem.
func TooManyUnready(unready, nodes int) bool {
	return unready > toleratedUnready && unready*100 > nodes*toleratedUnreadyPercent
}

// Unready reports whether a Node's Ready condition is False or Unknown. A Node without the
// condition is new, which is not a problem.
func Unready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}
