// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/storm"
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

// taintController plays the machine-taint controller beside machine-controller-manager and a machine-controller. It makes that controller's own
// plans, remembers them as its process does, and writes on the versions that it has read, in the same order.
type taintController struct {
	*cluster
	taint *machinetaint.Preview
	core  kubernetes.Interface
	ours  versioned.Interface
}

// keepAsPlanned is the program of a taintController. Its memory ends with it.
func (c *cluster) keepAsPlanned(ctx context.Context, config *rest.Config) error {
	taint, err := machinetaint.NewPreview(keep.Settings{SurplusPatience: time.Hour}, true)
	if err != nil {
		return err
	}
	return c.actor(func(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (time.Duration, error) {
		return (&taintController{cluster: c, taint: taint, core: core, ours: ours}).look(ctx), nil
	})(ctx, config)
}

func (k *taintController) look(ctx context.Context) (again time.Duration) {
	growing := false
	k.set(func() { growing = k.growing })
	if growing {
		return 0
	}
	for _, m := range k.machines() {
		again = requeue.Sooner(again, k.bootstrap(ctx, k.core, k.ours, m))
	}
	for _, d := range k.deployments() {
		again = requeue.Sooner(again, k.hold(ctx, d.Name))
		k.follow(ctx, d.Name)
	}
	return again
}

// read shows the preview what there is.
func (k *taintController) read() {
	err := k.taint.SetObjects(machinetaint.Objects{
		Deployments: pointers(k.deployments()), Sets: pointers(k.sets()), Machines: pointers(k.machines()), Nodes: pointers(k.nodes()), Pods: pointers(k.pods()),
	}, time.Now())
	if err != nil {
		panic(err) // the objects have keys
	}
}

func pointers[T any](all []T) (to []*T) {
	for i := range all {
		to = append(to, &all[i])
	}
	return to
}

// hold carries out a plan. What it writes to the MachineDeployment waits until no machine is released any more.
func (k *taintController) hold(ctx context.Context, name string) time.Duration {
	k.read()
	v, plan, ok := k.taint.Plan(ns, name)
	if !ok || plan.Idle {
		return plan.Again
	}
	after, err := machinetaint.AfterPlan(v, plan)
	if err != nil {
		panic(err) // what was read can be changed
	}
	d, written := v.Deployment, k.writeMachines(ctx, after)
	frees := slices.ContainsFunc(plan.Machines, func(c keep.MachineChange) bool { return c.Mark == keep.Free })
	after.Deployment.Status = d.Status
	if (!written || !frees) && !equality.Semantic.DeepEqual(after.Deployment, d) {
		if answer, err := k.ours.MachineV1alpha1().MachineDeployments(ns).Update(ctx, after.Deployment, metav1.UpdateOptions{}); err == nil {
			d = answer
		}
	}
	if is := pool.AppliedOf(d, d.Spec.Replicas); is.Excess == plan.Rule.Applied.Excess && is.Absorbed == 0 {
		k.taint.Remember(v, plan)
	}
	return plan.Again
}

// writeMachines reports whether all were written, each Node before its Machine.
func (k *taintController) writeMachines(ctx context.Context, after machinetaint.After) bool {
	for _, n := range after.Nodes {
		if _, err := k.core.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); err != nil {
			return false
		}
	}
	for _, m := range after.Machines {
		if _, err := k.ours.MachineV1alpha1().Machines(ns).Update(ctx, m, metav1.UpdateOptions{}); err != nil {
			return false
		}
	}
	return true
}

// follow does what machine-controller-manager does: there are as many machines as it is shown.
func (k *taintController) follow(ctx context.Context, name string) {
	machines := k.ours.MachineV1alpha1().Machines(ns)
	d := k.deployment(name)
	shown, staying := pool.Visible(d), of(name, k.machines())
	for _, set := range k.sets() {
		if set.Name == name && int(set.Spec.Replicas) != shown {
			set.Spec.Replicas = int32(shown)
			_, _ = k.ours.MachineV1alpha1().MachineSets(ns).Update(ctx, &set, metav1.UpdateOptions{})
		}
	}
	for range shown - len(staying) {
		k.read()
		_, _ = machines.Create(ctx, k.taint.Created(ns, name, k.machine(name, false)), metav1.CreateOptions{})
	}
	slices.SortStableFunc(staying, func(a, b mcm.Machine) int {
		return cmp.Or(cmp.Compare(pool.Priority(&a), pool.Priority(&b)), cmp.Compare(b.Name, a.Name))
	})
	for _, m := range staying[:max(0, len(staying)-shown)] {
		k.harm(m.Name)
		_ = machines.Delete(ctx, m.Name, metav1.DeleteOptions{})
		_ = k.core.CoreV1().Nodes().Delete(ctx, m.Name, metav1.DeleteOptions{})
	}
}

// harm notes that a machine is deleted, where pods run on it.
func (k *taintController) harm(machine string) {
	for _, p := range k.pods() {
		if p.Spec.NodeName == machine {
			k.set(func() { k.harmed = append(k.harmed, p.Name+" on "+machine) })
		}
	}
}

// inhabit returns a cluster whose reserve a taintController holds. Whichever accounting there is, it knows it.
func inhabit(w *storm.World) *cluster {
	return adoptWith(w, (*cluster).keepAsPlanned)
}

func (c *cluster) deployment(name string) *v1alpha1.MachineDeployment {
	GinkgoHelper()
	for _, d := range c.deployments() {
		if d.Name == name {
			return &d
		}
	}
	Fail("there is no " + name)
	return nil
}
