// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const (
	// patience is what a reconcile of the extension gets here. Its own is five minutes, in looks of five seconds; nothing that
	// makes progress takes that long here.
	patience = 90 * time.Second
	// rolling is the patience for a rollout. Machines go one after the other, and each takes half a minute.
	rolling = 5 * time.Minute
	// quiet is how long all is looked at once nothing moves any more: two rounds of machine-controller-manager.
	quiet = 12 * time.Second
	// secondTry is how long a reserve takes to grow again after a reduction that means nothing.
	secondTry = 80 * time.Second
	// spares are the machines that stories add: in reserve with ours, for workload with stock.
	spares = 2
)

// addReserve asks for two machines more, as the owner of a Shoot does: in reserve where that is known, else for workload.
func (t *told) addReserve(ctx context.Context) {
	GinkgoHelper()
	t.addReserveOf(ctx, spares)
}

func (t *told) addReserveOf(ctx context.Context, machines int) {
	GinkgoHelper()
	t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { t.wishReserve(&w.Pools[0], machines) })
	t.expect("the extension is content with the reserve", t.reconciled(ctx))
	t.n += machines
	t.expect("the reserve comes up", t.settling(ctx, t.n))
}

func (t *told) wishReserve(pool *extensionsv1alpha1.WorkerPool, machines int) {
	if t.shoot.image == evenkeel {
		pool.Annotations = reserved(*pool, machines)
	} else {
		pool.Minimum += int32(machines)
	}
}

// askForReserve asks for it as addReserve does, and waits for no machine.
func (t *told) askForReserve(ctx context.Context) {
	GinkgoHelper()
	t.ask(ctx, reserved(t.shoot.worker.Spec.Pools[0], spares))
}

// ask has the worker of the Shoot carry these annotations.
func (t *told) ask(ctx context.Context, annotations map[string]string) {
	GinkgoHelper()
	t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { w.Pools[0].Annotations = annotations })
	t.expect(fmt.Sprintf("the extension is content with %v", annotations), t.reconciled(ctx))
}

// faults are those of the provider in zone a from now on; see docs/virtual-provider.md.
func (s *shoot) faults(ctx context.Context, fault string) {
	GinkgoHelper()
	s.inject(ctx, "zones: {a: {"+fault+"}}")
}

func (s *shoot) inject(ctx context.Context, faults string) {
	GinkgoHelper()
	Expect(createOrReplace(ctx, seed, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "virtual-provider"},
		Data:       map[string]string{"faults.yaml": faults},
	})).To(Succeed())
}

// booting waits until so many machines boot.
func (s *shoot) booting(ctx context.Context, n int) error {
	return s.eventually(ctx, func() error {
		boot := 0
		for _, m := range s.machines(ctx) {
			if phase := m.Status.CurrentStatus.Phase; phase == "" || phase == machinev1alpha1.MachinePending {
				boot++
			}
		}
		if boot != n {
			return fmt.Errorf("%d machines boot; want %d", boot, n)
		}
		return nil
	})
}

// says waits until a condition of a MachineDeployment has a reason.
func (s *shoot) says(ctx context.Context, condition, reason string) error {
	return s.eventually(ctx, func() error {
		for _, c := range s.deployments(ctx)[0].Status.Conditions {
			if string(c.Type) == condition && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("condition %s does not have the reason %s: %v", condition, reason, s.deployments(ctx)[0].Status.Conditions)
	})
}

// eventually is what is wrong after the patience of a test.
func (s *shoot) eventually(ctx context.Context, wrong func() error) error {
	return s.within(ctx, patience, wrong)
}

func (s *shoot) within(ctx context.Context, patience time.Duration, wrong func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := wrong()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(interval):
		}
	}
}

// wrongAnnotations are annotations of a worker about its reserve that mean nothing. Each stands for a way to be wrong.
func wrongAnnotations() []map[string]string {
	var all []map[string]string
	for _, text := range []string{
		"", "3", "3-9-2", "3:9:two", "3:9:-1", "3:9:1.5", "3:9:2:1", " 3:9:2", "9:3:2", "3:9:1001%", "3:9:cpu", "3:9:max(1)", "3:9999999999:2",
	} {
		all = append(all, map[string]string{machine.BoundsAnnotation: text})
	}
	for _, text := range []string{"", "two", "-1", "2147483648", "5 %"} {
		all = append(all, map[string]string{machine.BoundsAnnotation: "3:9", machine.PoolExcessAnnotation: text})
	}
	return all
}

// reserved is the one annotation of a worker that asks for a reserve.
func reserved(pool extensionsv1alpha1.WorkerPool, machines int) map[string]string {
	return map[string]string{machine.BoundsAnnotation: fmt.Sprintf("%d:%d:%d", pool.Minimum, pool.Maximum, machines)}
}

// reconciled is a reconcile with the patience of a test.
func (s *shoot) reconciled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.reconcile(ctx)
}

// rolled reconciles until the extension is content with a rollout. The first reconcile waits for a second MachineSet, which may be gone
// when all Nodes are rolled: then it times out, whatever binary runs, and the next one succeeds.
func (s *shoot) rolled(ctx context.Context) error {
	return s.within(ctx, rolling, func() error { return s.reconciled(ctx) })
}

// nights is how often a Shoot hibernates and wakes up: once, or as often as NIGHTS says.
func nights() int {
	GinkgoHelper()
	return must(strconv.Atoi(cmp.Or(os.Getenv("NIGHTS"), "1")))
}

// hibernate does what gardenlet does, in its order: the manager stays while there are machines, the extension takes them, and the
// rest of the control plane goes once there are no Nodes.
func (s *shoot) hibernate(ctx context.Context) error {
	GinkgoHelper()
	s.hibernation(ctx, true, false)
	s.deploy(ctx, 1)
	if err := s.reconciled(ctx); err != nil {
		return err
	}
	Eventually(func() int { all, _ := s.nodes(ctx); return all }).WithContext(ctx).Should(BeZero(), "gardenlet waits for it")
	Eventually(s.kubelet.running).WithContext(ctx).Should(BeEmpty(), "the extension scales the manager down")
	s.hibernation(ctx, true, true)
	return nil
}

// wake does what gardenlet does.
func (s *shoot) wake(ctx context.Context) error {
	GinkgoHelper()
	s.hibernation(ctx, false, true)
	s.deploy(ctx, 1)
	err := s.reconciled(ctx)
	s.hibernation(ctx, false, false)
	return err
}

// settled is nil when that many machines run, each with its Ready Node, and no other.
func (s *shoot) settled(ctx context.Context, n int) error {
	machines := s.machines(ctx)
	for _, m := range machines {
		if m.Status.CurrentStatus.Phase != "Running" || m.DeletionTimestamp != nil {
			return fmt.Errorf("%d machines, %s is %s", len(machines), m.Name, m.Status.CurrentStatus.Phase)
		}
	}
	nodes, ready := s.nodes(ctx)
	if len(machines) != n || nodes != n || ready != n {
		return fmt.Errorf("%d machines, %d Nodes, %d of them Ready; want %d", len(machines), nodes, ready, n)
	}
	return nil
}

// settles waits until that many machines run, and then looks for a while whether they still do.
func (s *shoot) settles(ctx context.Context, n int) {
	GinkgoHelper()
	Expect(s.settling(ctx, n)).To(Succeed())
}

// settling is what keeps the machines from settling, after the patience of a test.
func (s *shoot) settling(ctx context.Context, n int) error {
	begin := time.Now()
	since := begin
	for {
		err := s.settled(ctx, n)
		now := time.Now()
		switch {
		case err != nil && now.Sub(begin) > patience:
			return err
		case err != nil:
			since = now
		case now.Sub(since) > quiet:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}

// nodes counts the Nodes, and those of them that are Ready and not cordoned.
func (s *shoot) nodes(ctx context.Context) (all, ready int) {
	GinkgoHelper()
	var list corev1.NodeList
	Expect(target.List(ctx, &list)).To(Succeed())
	for _, node := range list.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !node.Spec.Unschedulable {
				ready++
			}
		}
	}
	return len(list.Items), ready
}

// serving are the machines that are not in reserve, oldest first.
func (s *shoot) serving(ctx context.Context) []machinev1alpha1.Machine {
	GinkgoHelper()
	machines := slices.DeleteFunc(s.machines(ctx), func(m machinev1alpha1.Machine) bool { return m.Annotations[machine.ReserveAnnotation] != "" })
	slices.SortFunc(machines, func(a, b machinev1alpha1.Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return machines
}
