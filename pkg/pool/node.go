// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"

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
