// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan/plantest"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// schedule binds pods that wait, the oldest first, to the node that has most left, and says so where there is none.
func (c *cluster) schedule(ctx context.Context, core kubernetes.Interface, _ versioned.Interface) time.Duration {
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return time.Second
	}
	pods, err := core.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return time.Second
	}
	free := map[string]int64{}
	for _, n := range nodes.Items {
		free[n.Name] = n.Status.Allocatable.Cpu().MilliValue()
	}
	for _, p := range pods.Items { // the scheduler keeps room for those that are nominated
		free[cmp.Or(p.Spec.NodeName, p.Status.NominatedNodeName)] -= wants(p)
	}
	slices.SortStableFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 {
			continue
		}
		free[p.Status.NominatedNodeName] += wants(p)
		if best := place(p, nodes.Items, free); best != "" {
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: best}}
			if core.CoreV1().Pods(p.Namespace).Bind(ctx, binding, metav1.CreateOptions{}) == nil {
				free[best] -= wants(p)
			}
			continue
		}
		free[p.Status.NominatedNodeName] -= wants(p)
		if len(p.Status.Conditions) == 0 {
			p.Status.Phase = corev1.PodPending
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			_, _ = core.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{})
		}
	}
	return 0
}

func wants(p corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() }

// place is the node with most left that takes the pod.
func place(p corev1.Pod, nodes []corev1.Node, free map[string]int64) string {
	best := ""
	for _, n := range nodes {
		tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return !slices.ContainsFunc(p.Spec.Tolerations, func(own corev1.Toleration) bool { return own.Key == t.Key })
		})
		selected := p.Spec.NodeSelector[Zone] == "" || p.Spec.NodeSelector[Zone] == n.Labels[Zone]
		picky := p.Labels["app"] == "picky" // by a rule of the scheduler's that nobody knows
		fits := !tainted && selected && !picky && free[n.Name] >= wants(p)
		switch {
		case fits && n.Name == p.Status.NominatedNodeName:
			return n.Name
		case fits && (best == "" || free[n.Name] > free[best]):
			best = n.Name
		}
	}
	return best
}

// keep does what machine-controller-manager, a machine-controller and the machine-taint controller do with a reserve: it
// releases the oldest of it while fewer than replicas serve, and makes new ones.
func (c *cluster) keep(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) time.Duration {
	growing := false
	c.set(func() { growing = c.growing })
	if growing {
		return 0
	}
	again, all := time.Duration(0), c.machines()
	for _, d := range c.deployments() {
		machines := of(d.Name, all)
		for _, m := range machines {
			if left := c.bootstrap(ctx, core, ours, m); left > 0 && (again == 0 || left < again) {
				again = left
			}
		}
		c.release(ctx, core, ours, d, machines)
		c.refill(ctx, ours, d, len(machines))
	}
	return again
}

// of are the machines of a pool, the oldest first.
func of(pool string, all []mcm.Machine) []mcm.Machine {
	all = slices.DeleteFunc(slices.Clone(all), func(m mcm.Machine) bool { return m.Labels["name"] != pool })
	slices.SortFunc(all, func(a, b mcm.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (c *cluster) bootstrap(ctx context.Context, core kubernetes.Interface, ours versioned.Interface, m mcm.Machine) (left time.Duration) {
	if m.Status.CurrentStatus.Phase == mcm.MachineRunning {
		return 0
	}
	if left = time.Until(m.CreationTimestamp.Add(c.boot)); left > 0 {
		return left
	}
	n := fixture.Node(m.Name, func(n *corev1.Node) { n.Labels[Zone], n.Spec.ProviderID = m.Labels["name"], "sim:///"+n.Name })
	n.Spec.Taints, n.Annotations = m.Spec.NodeTemplateSpec.Spec.Taints, m.Spec.NodeTemplateSpec.Annotations
	if inReserve(m) && len(n.Spec.Taints) == 0 {
		Held(n)
	}
	_, _ = core.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID = m.Name, "sim:///"+m.Name
	updated, err := ours.MachineV1alpha1().Machines(ns).Update(ctx, &m, metav1.UpdateOptions{})
	if err != nil {
		return time.Second
	}
	updated.Status.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineRunning}
	if _, err := ours.MachineV1alpha1().Machines(ns).UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return time.Second
	}
	return 0
}

func inReserve(m mcm.Machine) bool { return m.Annotations[v1alpha1.ReserveAnnotation] != "" }

func (c *cluster) release(ctx context.Context, core kubernetes.Interface, ours versioned.Interface, d v1alpha1.MachineDeployment, machines []mcm.Machine) {
	wanted := int(pool.Requested(&d))
	for _, m := range machines {
		if !inReserve(m) {
			wanted--
		}
	}
	kept := keptMachines(d, machines)
	claims := pool.ClaimsOf(&d)
	slices.SortStableFunc(machines, func(a, b mcm.Machine) int {
		return cmp.Compare(slices.Index(claims.Machines, b.Name), slices.Index(claims.Machines, a.Name))
	})
	for _, m := range machines {
		if wanted <= 0 || !inReserve(m) || kept[m.Name] || m.Status.CurrentStatus.Phase != mcm.MachineRunning {
			continue
		}
		n, err := core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil {
			return
		}
		n.Spec.Taints = nil
		if _, err := core.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); err != nil {
			return
		}
		delete(m.Annotations, v1alpha1.ReserveAnnotation)
		if _, err := ours.MachineV1alpha1().Machines(ns).Update(ctx, &m, metav1.UpdateOptions{}); err != nil {
			return
		}
		wanted--
	}
}

// keptMachines are dedicated and not claimed, by name.
func keptMachines(d v1alpha1.MachineDeployment, machines []mcm.Machine) map[string]bool {
	r, claims := int(pool.Requested(&d)), pool.ClaimsOf(&d)
	var all []reserve.Machine
	for _, m := range machines {
		all = append(all, reserve.Machine{Name: m.Name, Phase: m.Status.CurrentStatus.Phase, Reserve: inReserve(m), Created: m.CreationTimestamp.Time, Priority: reserve.PriorityServing})
	}
	kept := map[string]bool{}
	for i, owner := range reserve.Dedicate(all, pool.Dedications(&d, r)) {
		kept[all[i].Name] = owner != "" && !claims.Has(all[i].Name, r)
	}
	return kept
}

func (c *cluster) refill(ctx context.Context, ours versioned.Interface, d v1alpha1.MachineDeployment, there int) {
	r := int(pool.Requested(&d))
	wanted := r + int(ptr.Deref(d.Spec.ExcessReplicas, 0))
	if bounds, err := v1alpha1.ParseBounds(d.Annotations[v1alpha1.BoundsAnnotation]); err == nil {
		wanted = max(r, min(wanted, int(bounds.Max)))
	}
	for range wanted - there {
		_, _ = ours.MachineV1alpha1().Machines(ns).Create(ctx, c.machine(d.Name, true), metav1.CreateOptions{})
	}
}
