// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Settling is how long a Node cannot be a template after it became Ready or left the reserve,
// because pods of its DaemonSets are still being created. cluster-autoscaler waits equally long
// after Ready.
const Settling = time.Minute

// Candidate is a Node of a MachineDeployment that may become its template.
type Candidate struct {
	Node *corev1.Node
	// Pods are all pods that are bound to the Node.
	Pods []*corev1.Pod
	// Reserve reports whether the Machine carries the reserve mark, even if the Node does not yet,
	// or no longer.
	Reserve bool
	// Released is when the machine left the reserve; zero if it never was in reserve. Callers that
	// do not know, because they have just started, pass the present.
	Released time.Time
}

// Fit reports whether the Node shows what a new machine offers to workload: it is Ready and
// schedulable, has been so for a while, is not about to be deleted, and is not in reserve: DaemonSets
// that do not tolerate the reserve taint do not run there.
func (c Candidate) Fit(now time.Time) bool {
	n := c.Node
	if _, reserve := n.Annotations[v1alpha1.ReserveAnnotation]; reserve || c.Reserve || now.Sub(c.Released) < Settling {
		return false
	}
	if n.DeletionTimestamp != nil || n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, unsettling) {
		return false
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && now.Sub(condition.LastTransitionTime.Time) >= Settling
		}
	}
	return false
}

// Passing reports whether a taint belongs to the present state of a Node, such as the lack of memory
// or an imminent deletion, so that a fresh machine of the same kind does not keep it.
func Passing(t corev1.Taint) bool {
	return unsettling(t) || strings.HasPrefix(t.Key, "node.kubernetes.io/")
}

// unsettling reports whether a taint shows that the Node is not complete yet, or is about to be
// deleted.
func unsettling(t corev1.Taint) bool {
	switch t.Key {
	case "ToBeDeletedByClusterAutoscaler",
		"node.cloudprovider.kubernetes.io/uninitialized",
		"node.gardener.cloud/critical-components-not-ready":
		return true
	}
	return strings.HasPrefix(t.Key, "startup-taint.cluster-autoscaler.kubernetes.io/") ||
		strings.HasPrefix(t.Key, "ignore-taint.cluster-autoscaler.kubernetes.io/")
}

// Choose returns the template of a MachineDeployment from one of its Nodes, or false if none is
// suitable. It chooses a Node that runs as many DaemonSet pods as most of them do, so that neither
// a Node that a DaemonSet's rollout has just reached decides, nor one that was set aside; of those
// the oldest, so that the choice seldom changes. Callers that ask repeatedly should remember the
// last template from a Node: it is more accurate than one from [FromClass].
func Choose(name string, candidates []Candidate, now time.Time) (Template, bool) {
	type counted struct {
		Candidate
		daemons int
	}
	var fit []counted
	nodes := map[int]int{}
	for _, c := range candidates {
		if c.Fit(now) {
			daemons := c.everywhere()
			fit = append(fit, counted{c, daemons})
			nodes[daemons]++
		}
	}
	if len(fit) == 0 {
		return Template{}, false
	}
	best := slices.MinFunc(fit, func(a, b counted) int {
		return cmp.Or(
			cmp.Compare(nodes[b.daemons], nodes[a.daemons]),
			cmp.Compare(b.daemons, a.daemons),
			a.Node.CreationTimestamp.Compare(b.Node.CreationTimestamp.Time),
			cmp.Compare(a.Node.Name, b.Node.Name),
		)
	})
	return FromNode(name, best.Node, best.Pods), true
}

// everywhere counts the pods of a Node that a fresh machine would run as well.
func (c Candidate) everywhere() int {
	n := 0
	for _, pod := range c.Pods {
		if runsEverywhere(pod) {
			n++
		}
	}
	return n
}

// FromNode returns the template of a MachineDeployment from one of its Nodes and all pods bound to
// it.
func FromNode(name string, node *corev1.Node, pods []*corev1.Pod) Template {
	return Template{
		Name:        name,
		Capacity:    node.Status.Capacity,
		Allocatable: node.Status.Allocatable,
		Free:        Free(node.Status.Allocatable, pods),
		Labels:      node.Labels,
	}
}
