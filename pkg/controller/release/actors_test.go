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

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
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

// keep does what machine-controller-manager, a machine-controller and the controller of MachineDeployments do with a reserve: it
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
		all = append(all, reserve.Machine{Name: m.Name, Phase: m.Status.CurrentStatus.Phase, Reserve: inReserve(m), Created: m.CreationTimestamp.Time})
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

// keeper plays the controller of MachineDeployments beside a machine-controller. It makes that controller's own plans, remembers them as
// its process does, and writes on the versions that it has read.
type keeper struct {
	*cluster
	preview *machinedeployment.Preview
	core    kubernetes.Interface
	ours    versioned.Interface
}

// keepAsPlanned is the program of a keeper. Its memory ends with it.
func (c *cluster) keepAsPlanned(ctx context.Context, config *rest.Config) error {
	preview, err := machinedeployment.NewPreview(plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}, machinetaint.Settings{SurplusPatience: time.Hour}, true)
	if err != nil {
		return err
	}
	return c.actor(func(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (time.Duration, error) {
		return (&keeper{cluster: c, preview: preview, core: core, ours: ours}).look(ctx), nil
	})(ctx, config)
}

func (k *keeper) look(ctx context.Context) (again time.Duration) {
	growing := false
	k.set(func() { growing = k.growing })
	if growing {
		return 0
	}
	for _, m := range k.machines() {
		again = requeue.Sooner(again, k.bootstrap(ctx, k.core, k.ours, m))
	}
	for _, d := range k.deployments() {
		again = requeue.Sooner(again, k.follow(ctx, d.Name))
	}
	return again
}

func pointers[T any](all []T) (to []*T) {
	for i := range all {
		to = append(to, &all[i])
	}
	return to
}

// follow carries out a plan, as far as its writes succeed. It is remembered if all do.
func (k *keeper) follow(ctx context.Context, name string) time.Duration {
	err := k.preview.SetObjects(machinedeployment.Objects{
		Deployments: pointers(k.deployments()), Sets: pointers(k.sets()), Machines: pointers(k.machines()), Nodes: pointers(k.nodes()), Pods: pointers(k.pods()),
	}, time.Now())
	if err != nil {
		panic(err) // the objects have keys
	}
	v, made, ok := k.preview.Plan(ns, name)
	if !ok {
		return 0
	}
	after, err := k.preview.After(v, made)
	if err != nil {
		panic(err) // what was read can be changed
	}
	if k.write(ctx, v.Deployment, after) {
		k.preview.Remember(v, made)
	}
	return made.Again
}

// write reports whether all was written, each Node before its Machine.
func (k *keeper) write(ctx context.Context, before *v1alpha1.MachineDeployment, after machinedeployment.After) bool {
	control := k.ours.MachineV1alpha1()
	var errs []error
	for _, n := range after.Nodes {
		_, err := k.core.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	for _, m := range after.Machines {
		if m.DeletionTimestamp != nil {
			errs = append(errs, k.remove(ctx, m))
			continue
		}
		_, err := control.Machines(ns).Update(ctx, m, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	if d := after.Deployment; !equality.Semantic.DeepEqual(d.Spec, before.Spec) || !equality.Semantic.DeepEqual(d.ObjectMeta, before.ObjectMeta) {
		_, err := control.MachineDeployments(ns).Update(ctx, d, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	if errors.Join(errs...) != nil {
		return false
	}
	for _, set := range after.Sets {
		if set.ResourceVersion == "" {
			set.UID = ""
			_, _ = control.MachineSets(ns).Create(ctx, set, metav1.CreateOptions{})
			return false // its machines are for the next plan
		}
		_, err := control.MachineSets(ns).Update(ctx, set, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	for _, m := range after.Created {
		named := k.machine(m.Labels["name"], pool.Marked(m))
		m.Name, m.UID = named.Name, ""
		_, err := control.Machines(ns).Create(ctx, m, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...) == nil
}

// remove has a machine go at once, with its Node.
func (k *keeper) remove(ctx context.Context, m *mcm.Machine) error {
	k.harm(m.Name)
	if err := k.ours.MachineV1alpha1().Machines(ns).Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &m.ResourceVersion}}); err != nil {
		return err
	}
	_ = k.core.CoreV1().Nodes().Delete(ctx, m.Name, metav1.DeleteOptions{})
	return nil
}

// harm notes that a machine is deleted, where pods run on it.
func (k *keeper) harm(machine string) {
	for _, p := range k.pods() {
		if p.Spec.NodeName == machine {
			k.set(func() { k.harmed = append(k.harmed, p.Name+" on "+machine) })
		}
	}
}

// inhabit returns a cluster whose reserve a keeper holds. Whichever accounting there is, it knows it.
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
