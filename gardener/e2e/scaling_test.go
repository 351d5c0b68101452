// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const (
	// healthTimeout is how long a machine may be unhealthy in a pool where one dies.
	healthTimeout = 15 * time.Second
	// emptyZone is how long a zone creates no machines.
	emptyZone = 30 * time.Second
	// handover is how long the lease of a process lasts that ended and did not give it up, as stock does not.
	handover = 20 * time.Second
)

// Stories about pools that grow, lose machines, and are needed.
var scaling = []story{
	{name: "a Shoot's owner raises the minimum to seven beside a reserve of two", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) {
			if w.Pools[0].Minimum = 7; t.shoot.image == evenkeel {
				w.Pools[0].Annotations = reserved(w.Pools[0], spares)
			}
		})
		t.expect("the extension is content with the minimum", t.reconciled(ctx))
		t.n = 7
	}},
	{name: "Gardener's autoscaler adds two machines in a zone that has none, beside a reserve of two", zones: []string{"a", "b"}, act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		zones := t.deployments(ctx)
		t.faults(ctx, "outage: true")
		f := newFork(ctx, t.namespace)
		t.expect("the autoscaler may add two", f.grow(ctx, zones[0].Name, 2, 9))
		// The other zone keeps the reserve in the meantime. Of stock, the autoscaler asks for that.
		if t.shoot.image != evenkeel {
			t.expect("the autoscaler may add one elsewhere", f.grow(ctx, zones[1].Name, 1, 9))
		}
		t.expect("there is one more elsewhere", t.eventually(ctx, func() error { return t.runs(ctx, t.n+1) }))
		pause(ctx, emptyZone)
		t.faults(ctx, "")
		t.n += 2
		if t.shoot.image != evenkeel {
			t.expect("there are two more in the zone", t.settling(ctx, t.n+1))
			t.expect("the autoscaler may take that one away", newFork(ctx, t.namespace).shrink(ctx, zones[1].Name, t.newest(ctx, zones[1].Name)))
		}
	}},
	{name: "a machine dies beside a reserve of two", act: func(ctx context.Context, t *told) {
		t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) {
			w.Pools[0].MachineControllerManagerSettings = &gardencorev1beta1.MachineControllerManagerSettings{
				MachineHealthTimeout: &metav1.Duration{Duration: healthTimeout},
			}
		})
		t.addReserve(ctx)
		victim := t.serving(ctx)[0].Name
		t.inject(ctx, "machines: {"+victim+": {dead: true}}")
		t.expect("it is replaced", t.within(ctx, rolling, func() error {
			if t.gone(ctx, []string{victim}) == nil {
				return fmt.Errorf("%s is there", victim)
			}
			return nil
		}))
	}},
	{name: "a reserve grows to four and is taken away", act: func(ctx context.Context, t *told) {
		before := t.n
		t.addReserve(ctx)
		if t.shoot.image == evenkeel {
			t.n += spares
			t.ask(ctx, reserved(t.shoot.worker.Spec.Pools[0], 2*spares))
			t.expect("there is a reserve of four", t.settling(ctx, t.n))
			t.ask(ctx, reserved(t.shoot.worker.Spec.Pools[0], 0))
		} else {
			t.addReserve(ctx)
			t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { w.Pools[0].Minimum = int32(before) })
			t.expect("the extension is content with the minimum", t.reconciled(ctx))
			t.expect("the autoscaler may take four away", newFork(ctx, t.namespace).shrink(ctx, t.deployments(ctx)[0].Name, t.serving(ctx)[before:]...))
		}
		t.n = before
		t.expect("there is no reserve", t.settling(ctx, t.n))
		// Stock finds so many machines less at once to be too many, until it looks again.
		t.expect("the Worker is healthy in the end", t.within(ctx, rolling, func() error {
			detail, err := t.workerHealth(ctx)
			return cmp.Or(err, unhealthy(kindOf(detail), detail))
		}))
	}},
	waiting("one pod waits beside a reserve of two", 4, "3", 1),
	waiting("ten pods come beside a reserve of two", 10, "1600m", 2),
	waiting("a hundred pods come beside a reserve of two", 100, "190m", 2),
	{name: "Gardener's autoscaler adds two machines in one zone, and zones are kept even", zones: []string{"a", "b"}, act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		if t.shoot.image == evenkeel {
			annotations := reserved(t.shoot.worker.Spec.Pools[0], spares)
			annotations[machine.BalanceAnnotation] = string(machine.BalanceContinuous)
			t.ask(ctx, annotations)
		}
		t.expect("the autoscaler may add two", newFork(ctx, t.namespace).grow(ctx, t.deployments(ctx)[0].Name, 2, 9))
		t.n += 2
		if t.shoot.image == evenkeel {
			t.expect("the zones are even", t.eventually(ctx, func() error { return t.uneven(ctx) }))
		}
	}},
	{name: "all processes are restarted three times while a reserve of two comes up", act: func(ctx context.Context, t *told) {
		t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { t.wishReserve(&w.Pools[0], spares) })
		for range 3 {
			pause(ctx, 3*time.Second)
			t.kubelet.restart()
		}
		t.n += spares
		t.expect("the extension is content", t.reconciled(ctx))
	}},
	{name: "the image is swapped under thirty machines, and back beside a reserve of four", from: stock, size: 30, act: func(ctx context.Context, t *told) {
		there, back := evenkeel, stockAgain
		if t.row.image == stock {
			there, back = stockAgain, stock
		}
		t.occupy(ctx, 12)
		t.swap(ctx, there)
		pause(ctx, handover)
		t.addReserveOf(ctx, 4)
		before, pods := t.names(ctx), t.pods(ctx)
		t.swap(ctx, back)
		t.expect("there are as many machines after the swap back", t.settling(ctx, t.n))
		t.expect("no machine goes", t.gone(ctx, before))
		t.expect("no pod moves", differing(pods, t.pods(ctx)))
		t.expect("no Node keeps the reserve's taint", t.eventually(ctx, func() error { return t.tainted(ctx) }))
		t.deletePods(ctx)
	}},
}

// waiting is a story in which pods come for which the pool of three machines is too small by some. Stock has as many machines in
// all, and needs no more.
func waiting(name string, pods int, cpu string, missing int) story {
	return story{name: name, act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		created := createPods(ctx, pods, cpu)
		if t.shoot.image == evenkeel {
			t.n += missing
		}
		t.expect("all pods have a Node", t.eventually(ctx, func() error { return unbound(ctx) }))
		t.note("the last pod had a Node after at most %.1fs", time.Since(created).Seconds())
		t.expect("the reserve is refilled", t.settling(ctx, t.n))
		t.deletePods(ctx)
	}}
}

// occupy has pods run that each take most of a machine.
func (t *told) occupy(ctx context.Context, pods int) {
	GinkgoHelper()
	createPods(ctx, pods, "3")
	t.expect("all pods have a Node", t.eventually(ctx, func() error { return unbound(ctx) }))
}

// deletePods deletes the pods of users.
func (t *told) deletePods(ctx context.Context) {
	GinkgoHelper()
	Expect(target.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(metav1.NamespaceDefault), client.GracePeriodSeconds(0))).To(Succeed())
}

// createPods creates pods without an owner in the Shoot, and returns when the first one was.
func createPods(ctx context.Context, n int, cpu string) time.Time {
	GinkgoHelper()
	return createMorePods(ctx, 0, n, cpu)
}

// createMorePods creates pods beside the first ones.
func createMorePods(ctx context.Context, first, n int, cpu string) time.Time {
	GinkgoHelper()
	begin := time.Now()
	for i := first; i < first+n; i++ {
		Expect(target.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("wait-%03d", i)},
			Spec: corev1.PodSpec{
				AutomountServiceAccountToken: ptr.To(false),
				Containers: []corev1.Container{{Name: "pause", Image: "pause", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
				}}},
			},
		})).To(Succeed())
	}
	return begin
}

// unbound is an error where pods have no Node.
func unbound(ctx context.Context) error {
	var pods corev1.PodList
	if err := target.List(ctx, &pods, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return err
	}
	n := 0
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == "" {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d pods have no Node", n, len(pods.Items))
	}
	return nil
}

// runs is an error where another number of machines runs.
func (s *shoot) runs(ctx context.Context, n int) error {
	running := 0
	for _, m := range s.machines(ctx) {
		if m.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning {
			running++
		}
	}
	if running != n {
		return fmt.Errorf("%d machines run; want %d", running, n)
	}
	return nil
}

// newest is the machine of a MachineDeployment that was created last.
func (s *shoot) newest(ctx context.Context, deployment string) (newest machinev1alpha1.Machine) {
	GinkgoHelper()
	for _, m := range s.serving(ctx) {
		if m.Labels["name"] == deployment {
			newest = m
		}
	}
	return newest
}

// uneven is an error where one zone has more machines that serve than another.
func (s *shoot) uneven(ctx context.Context) error {
	zones := map[string]int{}
	for _, m := range s.serving(ctx) {
		zones[m.Labels["name"]]++
	}
	for name, n := range zones {
		if n*len(zones) != len(s.serving(ctx)) {
			return fmt.Errorf("%d machines serve in %s, of %v", n, name, zones)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
