// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

var _ = Describe("In the long run, zones", Label("ours", "long"), func() {
	It("that are uneven are balanced, with each pod moved at most once, and never fewer machines than replicas", func(ctx context.Context) {
		z := newZones(ctx, "even", []int32{6, 3, 1})
		z.settle(ctx, 6, 3, 1)
		w := z.work(ctx, 10)
		w.runs(ctx)
		least := z.leastReady(ctx)
		z.annotate(ctx, machine.BalanceAnnotation, string(machine.BalanceContinuous))
		Eventually(z.replicas).WithContext(ctx).WithTimeout(6 * time.Minute).Should(Equal("4/3/3"))
		z.settle(ctx, 4, 3, 3)
		w.runs(ctx)
		Expect(least()).To(BeNumerically(">=", 10))
		Expect(w.evictions(ctx)).To(HaveLen(2), "two machines went, with a pod each")
		Expect(w.evictions(ctx)).To(HaveEach(1))
		z.hasEvent(ctx, "BalanceMoved")
	})

	It("keep machines whose pods a budget holds, and report that", func(ctx context.Context) {
		z := newZones(ctx, "budget", []int32{3, 1})
		z.settle(ctx, 3, 1)
		w := z.work(ctx, 4)
		w.runs(ctx)
		w.budget(ctx, 4)
		z.annotate(ctx, machine.BalanceAnnotation, string(machine.BalanceContinuous))
		Eventually(func() string { return z.condition(ctx, 0, "ZonesBalanced") }).Should(Equal("False PodDisruptionBudget"))
		z.hasEvent(ctx, "BalanceBlocked")
		Consistently(z.replicas, 20*time.Second).WithContext(ctx).Should(Equal("3/1"))
		Expect(w.evictions(ctx)).To(BeEmpty())
		w.budget(ctx, 3)
		Eventually(z.replicas).WithContext(ctx).WithTimeout(3 * time.Minute).Should(Equal("2/2"))
	})

	It("keep growth where a waiting pod is bound by its volume", func(ctx context.Context) {
		z := newZones(ctx, "volume", []int32{1, 1, 1}, balanced(machine.BalanceScaleUp))
		z.settle(ctx, 1, 1, 1)
		z.work(ctx, 3).runs(ctx)
		pod := z.boundPod(ctx, 1)
		Eventually(func() string { return must(podState(ctx, pod)) }).Should(Equal("Unschedulable"))
		z[1].scale(ctx, 3)
		z.settle(ctx, 1, 3, 1)
		Eventually(func() string { return must(podState(ctx, pod)) }).Should(Equal("Running"))
		Expect(z.replicas(ctx)).To(Equal("1/3/1"))
	})

	It("take over replicas whose machines one cannot create, and give them back", func(ctx context.Context) {
		z := newZones(ctx, "outages", []int32{2, 2, 2}, balanced(machine.BalanceContinuous))
		z.settle(ctx, 2, 2, 2)
		setFault(ctx, "zones", z[2].name, "outage: true")
		z[0].scale(ctx, 8)
		z[0].settles(ctx, 5)
		z[1].settles(ctx, 5)
		Eventually(z.replicas).WithContext(ctx).Should(Equal("5/5/2"))
		setFault(ctx, "zones", z[2].name, "")
		Eventually(z.replicas).WithContext(ctx).WithTimeout(15 * time.Minute).Should(Equal("4/4/4"))
		z.settle(ctx, 4, 4, 4)
	})

	It("take over for one that fails within a minute, and it gets its share of the pool's excess back", func(ctx context.Context) {
		z := newZones(ctx, "standin", []int32{1, 1, 1}, poolExcess("4"))
		z.reserves(ctx, "2/1/1", "1/2/1", "1/1/2")
		w := z.work(ctx, 3)
		w.runs(ctx)
		at := 2
		if z.shares(ctx) == "1/1/2" {
			at = 0
		}
		setFault(ctx, "zones", z[at].name, "outage: true")
		z[at].dropReserve(ctx)
		Eventually(func() string { return z.condition(ctx, (at+1)%3, "PoolExcessSpread") }).Should(Equal("True FailedOver"))
		begun := time.Now()
		Eventually(func() string { return must(z.readyReserves(ctx)) }).Should(Or(Equal("2/2/0"), Equal("0/2/2")))
		AddReportEntry("stood in after", time.Since(begun))
		setFault(ctx, "zones", z[at].name, "")
		Eventually(func() string { return must(z.readyReserves(ctx)) }).WithTimeout(10 * time.Minute).Should(Or(Equal("2/1/1"), Equal("1/2/1"), Equal("1/1/2")))
		Expect(w.evictions(ctx)).To(BeEmpty(), "no pod was disturbed")
	})

	It("take over growth and reserve of one whose Nodes are not ready within a minute, and it gets them back", func(ctx context.Context) {
		z := newZones(ctx, "unready", []int32{4, 4, 4}, balanced(machine.BalanceScaleUp), poolExcess("6"), repairedAfter(20*time.Minute))
		z.reserves(ctx, "2/2/2")
		ready := z[1].reserve(ctx)[0]
		begun := time.Now()
		for _, m := range must(z[1].machines(ctx)) {
			if m.Name != ready {
				setFault(ctx, "machines", m.Name, "ready: Unknown")
			}
		}
		Eventually(func() string { return z.condition(ctx, 1, "ZonesBalanced") }).WithContext(ctx).WithTimeout(time.Minute).Should(Equal("False NodesNotReady"))
		AddReportEntry("noticed after", time.Since(begun))
		Expect(z.condition(ctx, 0, "PoolExcessSpread")).To(Equal("True FailedOver"))
		Eventually(z.readyReserves).WithContext(ctx).Should(Or(Equal("3/0/3"), Equal("3/1/3")), "one is tried, the others have the rest")
		z[0].scale(ctx, 10)
		Eventually(z.replicas).WithContext(ctx).Should(Equal("7/5/6"), "one is tried, the others have the rest")
		for _, m := range must(z[1].machines(ctx)) {
			setFault(ctx, "machines", m.Name, "")
		}
		Eventually(func() string { return z.condition(ctx, 1, "ZonesBalanced") }).WithContext(ctx).WithTimeout(10 * time.Minute).Should(Equal("True Even"))
		AddReportEntry("well again after", time.Since(begun))
		z.reserves(ctx, "2/2/2")
		z[0].scale(ctx, 10)
		Eventually(z.replicas).WithContext(ctx).Should(Equal("7/7/7"))
	})

	It("get their bounds from a Gardener's Worker", Serial, Label("gardener"), func(ctx context.Context) {
		restart := func() { // it asks for a Gardener when it starts, and seldom after that
			GinkgoHelper()
			Expect(cluster.Process(mcm).Kill()).To(Succeed())
			Expect(cluster.Process(mcm).Start()).To(Succeed())
		}
		DeferCleanup(restart) // once the Worker and its kind are gone: without a maximum, Gardener's zones have no reserve
		z := newZones(ctx, "worker", []int32{1, 1, 1}, poolExcess("4"))
		w := newWorker(ctx)
		restart()
		w.says(ctx, z, "1:3", "1:3", "1:3")
		z.bounds(ctx, "1:3:2 1:3:1 1:3:1")
		w.says(ctx, z, "2:4", "1:3", "1:2")
		z.bounds(ctx, "2:4:2 1:3:1 1:2:1")
	})

	It("hold back growth while the balance controller is off, but never a reduction", Serial, func(ctx context.Context) {
		c := another(ctx, localcluster.Options{Name: "e2e-held"})
		Expect(c.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
		runProgram(ctx, c, localcluster.Program{Name: machineController, Flags: rates})
		runProgram(ctx, c, localcluster.Program{Name: mcm, Flags: slices.Concat(rates, []string{"--controllers=mcm"})})
		moveTo(c, c)
		p := newPool(ctx, "held", 3, excess(1), func(md *machine.MachineDeployment) {
			md.Annotations = map[string]string{machine.AppliedReplicasAnnotation: "3"}
		})
		p.rests(ctx, 3, 1, "Complete")
		p.scale(ctx, 5)
		Consistently(func() ([]machine.Machine, error) { return p.machines(ctx) }, "5s").Should(HaveLen(4), "growth waits for its split")
		p.scale(ctx, 2)
		p.rests(ctx, 2, 1, "Complete")
	})

	It("end a move that was under way when its process was killed", Serial, func(ctx context.Context) {
		z := newZones(ctx, "killed-move", []int32{4, 1})
		z.settle(ctx, 4, 1)
		w := z.work(ctx, 5)
		w.runs(ctx)
		killed := z.killAt(ctx, `"reserve":1`, `"taken":1`)
		z.annotate(ctx, machine.BalanceAnnotation, string(machine.BalanceContinuous))
		Eventually(killed).WithTimeout(3*time.Minute).Should(Receive(Succeed()), "%s", z.moves(ctx))
		Eventually(z.replicas).WithContext(ctx).WithTimeout(6 * time.Minute).Should(Equal("3/2"))
		z.settle(ctx, 3, 2)
		w.runs(ctx)
		for pod, n := range w.evictions(ctx) {
			Expect(n).To(Equal(1), pod)
		}
	})
})

// killAt kills and restarts the manager at these moments of a move, one after the other. It watches, since a moment may be shorter than
// a look.
func (z zones) killAt(ctx context.Context, moments ...string) <-chan error {
	GinkgoHelper()
	changes, err := machines.MachineV1alpha1().MachineDeployments(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	var conditions []watchtools.ConditionFunc
	for _, moment := range moments {
		conditions = append(conditions, func(e watch.Event) (bool, error) {
			d, is := e.Object.(*machine.MachineDeployment)
			if !is || !slices.Contains(z, pool{d.Name}) || !strings.Contains(d.Annotations[machine.MoveAnnotation], moment) {
				return false, nil
			}
			return true, errors.Join(cluster.Process(mcm).Kill(), cluster.Process(mcm).Start())
		})
	}
	killed := make(chan error, 1)
	go func() {
		_, err := watchtools.UntilWithoutRetry(ctx, changes, conditions...)
		killed <- err
	}()
	return killed
}
