// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// schedule is a scheduler with a rule that no other component knows.
var schedule = world.Scheduler{Refuses: func(p *corev1.Pod, _ *corev1.Node) bool { return p.Labels["app"] == "picky" }}.Reconcile

// keep does what machine-controller-manager, a machine-controller and the machine-taint controller do with a reserve: it
// releases the oldest of it while fewer than replicas serve, and makes new ones.
func (c *cluster) keep(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration, err error) {
	growing := false
	c.set(func() { growing = c.growing })
	if growing {
		return 0, nil
	}
	all := c.machines()
	for _, d := range c.deployments() {
		machines := of(d.Name, all)
		for _, m := range machines {
			again = requeue.Sooner(again, c.bootstrap(ctx, core, ours, m))
		}
		err = errors.Join(err, c.release(ctx, core, ours, d, machines))
		c.refill(ctx, ours, d, len(machines))
	}
	return again, err
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

func inReserve(m mcm.Machine) bool { return world.InReserve(&m) }

func (c *cluster) release(ctx context.Context, core kubernetes.Interface, ours versioned.Interface, d v1alpha1.MachineDeployment, machines []mcm.Machine) error {
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
		if err := world.Release(ctx, core, ours, &m); err != nil {
			return err
		}
		wanted--
	}
	return nil
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
