// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// UnreadyLimits are cluster-autoscaler's limits for Nodes that are not ready: too many are more than
// both.
type UnreadyLimits struct {
	// Count is a number of Nodes.
	Count int
	// Percentage is a part of all Nodes, from 0 to 100.
	Percentage float64
}

// DefaultUnreadyLimits returns cluster-autoscaler's defaults.
func DefaultUnreadyLimits() UnreadyLimits { return UnreadyLimits{Count: 3, Percentage: 45} }

// Exceeded reports whether so many of a cluster's Nodes are not ready that no pod should be evicted:
// its replacement may find no place, and new Nodes may have the same problem.
func (l UnreadyLimits) Exceeded(unready, nodes int) bool {
	return unready > l.Count && l.exceedsPercentage(unready, nodes)
}

// ZoneExceeded reports whether so many Nodes of one zone are not ready that new ones there may have the
// same problem: too many, as in a cluster, or most of them. A zone has few Nodes, often no more than
// Count.
func (l UnreadyLimits) ZoneExceeded(unready, nodes int) bool {
	return l.exceedsPercentage(unready, nodes) && (unready > l.Count || 2*unready > nodes)
}

func (l UnreadyLimits) exceedsPercentage(unready, nodes int) bool {
	return float64(unready)*100 > float64(nodes)*l.Percentage
}

// Unready reports whether a Node's Ready condition is False or Unknown. A Node without the
// condition is new, which is not a problem.
func Unready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}
