// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// WorkerPoolLabel is Gardener's label of MachineDeployments with the name of their worker pool.
const WorkerPoolLabel = "worker.gardener.cloud/pool"

// WorkerPoolOf returns the Gardener worker pool of a MachineDeployment, by its own label or by that
// of its Nodes; empty if there is none.
func WorkerPoolOf(d *machine.MachineDeployment) string { return NameOf(d, WorkerPoolLabel) }

// NameOf returns the name of a MachineDeployment's pool, by the first of these labels that it has
// itself or that its Nodes have; empty if there is none.
func NameOf(d *machine.MachineDeployment, labels ...string) string {
	for _, key := range labels {
		if name := cmp.Or(d.Labels[key], d.Spec.Template.Spec.NodeTemplateSpec.Labels[key]); name != "" {
			return name
		}
	}
	return ""
}

// NodeOf returns the Node of a Machine, nil until it has registered; see [IsNodeOf].
func NodeOf(m *mcm.Machine, source Source) *corev1.Node {
	name := m.Labels[mcm.NodeLabelKey]
	if name == "" {
		return nil
	}
	if node := source.Node(name); node != nil && IsNodeOf(m, node) {
		return node
	}
	return nil
}

// IsReserveTaint reports whether a taint is the reserve taint, whatever its effect.
func IsReserveTaint(t corev1.Taint) bool { return t.Key == machine.ReserveTaintKey }

// HasReserveTaint reports whether the reserve taint is among taints.
func HasReserveTaint(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, IsReserveTaint)
}

// AddReserveTaint gives a Node the reserve taint in place of any that it has. Its list of taints may be
// shared, and is not changed.
func AddReserveTaint(n *corev1.Node) {
	n.Spec.Taints = append(slices.DeleteFunc(slices.Clone(n.Spec.Taints), IsReserveTaint), corev1.Taint{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule})
}

// NodeReady reports whether pods can be bound to a Node. A Node that has just become ready is still
// tainted for a moment.
func NodeReady(n *corev1.Node) bool {
	tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	return !tainted && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

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
