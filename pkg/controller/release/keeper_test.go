// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	machinetaintplan "github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// keeper plays the machine-taint controller beside machine-controller-manager and a machine-controller. It makes that controller's own
// plans, remembers them as its process does, and writes on the versions that it has read, in the same order.
type keeper struct {
	*cluster
	taint *machinetaint.Preview
	core  kubernetes.Interface
	ours  versioned.Interface
}

// keepAsPlanned is the program of a keeper. Its memory ends with it.
func (c *cluster) keepAsPlanned(ctx context.Context, config *rest.Config) error {
	taint, err := machinetaint.NewPreview(machinetaintplan.Settings{SurplusPatience: time.Hour}, true)
	if err != nil {
		return err
	}
	return c.actor(func(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (time.Duration, error) {
		return (&keeper{cluster: c, taint: taint, core: core, ours: ours}).look(ctx), nil
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
		again = requeue.Sooner(again, k.hold(ctx, d.Name))
		k.follow(ctx, d.Name)
	}
	return again
}

// read shows the preview what there is.
func (k *keeper) read() {
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
func (k *keeper) hold(ctx context.Context, name string) time.Duration {
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
	frees := slices.ContainsFunc(plan.Machines, func(c machinetaintplan.MachineChange) bool { return c.Mark == machinetaintplan.Free })
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
func (k *keeper) writeMachines(ctx context.Context, after machinetaint.After) bool {
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
func (k *keeper) follow(ctx context.Context, name string) {
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
