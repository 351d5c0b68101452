// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

// real are specs with an unmodified cluster-autoscaler; where there is none they are left out, and the suite says so.
func real(text string, body func()) bool {
	if binary == "" {
		return true
	}
	return Describe(text, Label("long"), Serial, body)
}

// most keeps the largest number of machines of a pool, those that terminate included, until the spec ends.
func (p pool) most(ctx context.Context) *atomic.Int64 {
	GinkgoHelper()
	var most atomic.Int64
	ended := make(chan struct{})
	watched, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(ended)
		for watched.Err() == nil {
			if list, err := p.machines(watched); err == nil {
				most.Store(max(most.Load(), int64(len(list))))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	DeferCleanup(func() { cancel(); <-ended })
	return &most
}

// outage is a zone without capacity, until the spec ends. Specs here run one at a time.
func outage(ctx context.Context, zone string) {
	GinkgoHelper()
	faults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap}, Data: map[string]string{
		virtual.FaultsKey: fmt.Sprintf("zones: {%s: {outage: true}}", zone),
	}}
	_, err := kube.CoreV1().ConfigMaps(namespace).Create(ctx, faults, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().ConfigMaps(namespace).Delete(ctx, virtual.FaultsConfigMap, metav1.DeleteOptions{})).To(Succeed())
	})
}

var _ = real("An unmodified cluster-autoscaler", func() {
	It("raises for pods: the reserve takes them at once and is refilled; at max the reserve is eaten, and max is never passed; then it names machines, and the reserve is refilled", func(ctx context.Context) {
		p := newPool(ctx, "grown", "grown", "1:5:2", 1)
		p.becomes(ctx, "R1 1+2+0")
		most := p.most(ctx)
		autoscale()
		workload(ctx, "grown", "grown", 2)
		runs(ctx, "grown", 2)
		p.becomes(ctx, "R2 2+2+0")
		demand(ctx, "grown", 3)
		runs(ctx, "grown", 3)
		p.becomes(ctx, "R3 3+2+0")
		demand(ctx, "grown", 6)
		runs(ctx, "grown", 5)
		p.becomes(ctx, "R5 5+0+0")
		Consistently(func() string { return p.counts(ctx) }, 5*time.Second).Should(Equal("R5 5+0+0"), "the sixth pod waits")
		demand(ctx, "grown", 2)
		p.becomes(ctx, "R2 2+2+0")
		Expect(run(ctx, "grown")).To(Equal(2))
		Expect(most.Load()).To(BeNumerically("<=", 5))
	})

	It("goes up and down at the cap for 10 cycles, without a call too many", func(ctx context.Context) {
		p := newPool(ctx, "cycled", "cycled", "1:5:2", 3)
		workload(ctx, "cycled", "cycled", 3)
		p.becomes(ctx, "R3 3+2+0")
		runs(ctx, "cycled", 3)
		most := p.most(ctx)
		autoscale()
		before := calls(ctx)
		for range 10 {
			demand(ctx, "cycled", 5)
			runs(ctx, "cycled", 5)
			p.becomes(ctx, "R5 5+0+0")
			demand(ctx, "cycled", 3)
			p.becomes(ctx, "R3 3+2+0")
			runs(ctx, "cycled", 3)
		}
		Expect(most.Load()).To(BeNumerically("<=", 5))
		after := calls(ctx)
		Expect(after["NodeGroupIncreaseSize"]-before["NodeGroupIncreaseSize"]).To(BeNumerically("<=", 20), "one or two per cycle")
		Expect(after["NodeGroupDeleteNodes"]-before["NodeGroupDeleteNodes"]).To(BeNumerically("<=", 20), "one per machine")
		Expect(after["NodeGroupDecreaseTargetSize"]).To(Equal(before["NodeGroupDecreaseTargetSize"]))
	})

	It("scales from zero and back", func(ctx context.Context) {
		p := newPool(ctx, "zero", "zero", "0:3", 0)
		autoscale()
		workload(ctx, "zero", "zero", 2)
		runs(ctx, "zero", 2)
		p.becomes(ctx, "R2 2+0+0")
		demand(ctx, "zero", 0)
		p.becomes(ctx, "R0 0+0+0")
	})

	It("balances over three zones, one of which has no machine yet", func(ctx context.Context) {
		zones := []pool{newPool(ctx, "even-1", "even", "0:9", 1), newPool(ctx, "even-2", "even", "0:9", 1), newPool(ctx, "even-3", "even", "0:9", 0)}
		workload(ctx, "even", "even", 2)
		runs(ctx, "even", 2)
		time.Sleep(65 * time.Second) // a Node is a template when it has been ready for a minute
		autoscale()
		demand(ctx, "even", 9)
		runs(ctx, "even", 9)
		for _, p := range zones {
			p.becomes(ctx, "R3 3+0+0")
		}
	})

	It("leaves a zone alone that is out of capacity, and takes another", func(ctx context.Context) {
		zones := []pool{newPool(ctx, "dry-1", "dry", "0:5", 1), newPool(ctx, "dry-2", "dry", "0:5", 1)}
		workload(ctx, "dry", "dry", 2)
		runs(ctx, "dry", 2)
		outage(ctx, "dry-1")
		autoscale("--balance-similar-node-groups=false")
		demand(ctx, "dry", 5)
		runs(ctx, "dry", 5)
		zones[0].becomes(ctx, "R1 1+0+0")
		zones[1].becomes(ctx, "R4 4+0+0")
	})

	It("goes on when it, or we, are restarted at any point, and during a rollout", func(ctx context.Context) {
		p := newPool(ctx, "shaken", "shaken", "1:6:1", 1)
		p.becomes(ctx, "R1 1+1+0")
		most := p.most(ctx)
		ca := autoscale()
		workload(ctx, "shaken", "shaken", 3)
		for i := range 3 {
			time.Sleep(time.Duration(i) * 500 * time.Millisecond)
			Expect(cluster.Process(manager).Kill()).To(Succeed())
			Expect(cluster.Process(manager).Start()).To(Succeed())
			time.Sleep(time.Duration(i) * 700 * time.Millisecond)
			Expect(ca.Kill()).To(Succeed())
			Expect(ca.Start()).To(Succeed())
		}
		runs(ctx, "shaken", 3)
		p.becomes(ctx, "R3 3+1+0")
		p.newClass(ctx, "shaken-2")
		p.patch(ctx, `{"spec":{"template":{"spec":{"class":{"name":"shaken-2"}}}}}`)
		demand(ctx, "shaken", 4)
		Eventually(func(g Gomega) {
			list, err := p.machines(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range list {
				g.Expect(m.Spec.Class.Name).To(Equal("shaken-2"))
			}
		}, 5*time.Minute).Should(Succeed())
		runs(ctx, "shaken", 4)
		demand(ctx, "shaken", 1)
		p.becomes(ctx, "R1 1+1+0")
		Expect(most.Load()).To(BeNumerically("<=", 7), "max, and one of the rollout's surge")
	})

	DescribeTable("takes the group that its expander chooses",
		func(ctx context.Context, expander string) {
			name := strings.ReplaceAll(expander, "-", "")
			a, b := newPool(ctx, name+"-a", name, "0:3", 0), newPool(ctx, name+"-b", name, "0:3", 0)
			autoscale("--expander="+expander, "--balance-similar-node-groups=false")
			workload(ctx, name, name, 2)
			runs(ctx, name, 2)
			x, err := a.replicas(ctx)
			Expect(err).NotTo(HaveOccurred())
			y, err := b.replicas(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(x + y).To(BeEquivalentTo(2))
		},
		Entry(nil, "random"), Entry(nil, "most-pods"), Entry(nil, "least-waste"),
	)

	It("deletes empty machines in bulk, heeds disruption budgets, follows bounds that change, and writes its status", func(ctx context.Context) {
		p := newPool(ctx, "kept", "kept", "1:8:1", 5)
		workload(ctx, "kept", "kept", 2)
		runs(ctx, "kept", 2)
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
		budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(2))
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}}
		_, err := kube.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, budget, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(kube.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, "kept", metav1.DeleteOptions{})).To(Succeed())
		})
		p.becomes(ctx, "R5 5+1+0")
		autoscale()
		p.becomes(ctx, "R2 2+1+0")
		runs(ctx, "kept", 2)
		p.patch(ctx, `{"metadata":{"annotations":{%q:"1:3:1"}}}`, machine.BoundsAnnotation)
		demand(ctx, "kept", 5)
		runs(ctx, "kept", 3)
		p.becomes(ctx, "R3 3+0+0")
		p.patch(ctx, `{"metadata":{"annotations":{%q:"1:5:1"}}}`, machine.BoundsAnnotation)
		runs(ctx, "kept", 5)
		p.becomes(ctx, "R5 5+0+0")
		Eventually(func() (string, error) {
			status, err := kube.CoreV1().ConfigMaps("kube-system").Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
			return status.Data["status"], err
		}).Should(ContainSubstring("name: kept"))
	})
})

// calls are those that the server of node groups has answered with OK so far, by method.
func calls(ctx context.Context) map[string]int {
	GinkgoHelper()
	port, err := cluster.Port(manager)
	Expect(err).NotTo(HaveOccurred())
	text, err := fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	Expect(err).NotTo(HaveOccurred())
	all := map[string]int{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "evenkeel_nodegroup_calls_total") || !strings.Contains(line, `code="OK"`) {
			continue
		}
		_, rest, _ := strings.Cut(line, `method="`)
		method, number, _ := strings.Cut(rest, `"} `)
		n := 0
		if _, err := fmt.Sscan(number, &n); err == nil {
			all[method] = n
		}
	}
	return all
}
