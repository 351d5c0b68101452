// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

// withoutMachines returns the server of a cluster that has Balancers and no machine API.
func withoutMachines() *sim.Server {
	return sim.New(sim.Options{Resources: slices.Concat(sim.Core, sim.Workloads, []sim.Resource{{
		Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "balancers", Kind: "Balancer", Namespaced: true, Status: true, Generation: true,
	}})})
}

// createShop creates a Balancer of 9 replicas for the Deployments a and b, which have the given number of replicas each.
func createShop(server *sim.Server, replicas int32, change func(*v1alpha1.Balancer)) {
	GinkgoHelper()
	ctx, user := context.Background(), server.ConfigFor("user")
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: fixture.Namespace}}
	b.Spec.Replicas, b.Spec.Policy.PolicyName = ptr.To[int32](9), v1alpha1.Even
	b.Spec.Selector.MatchLabels = map[string]string{"app": "shop"}
	for _, target := range []string{"a", "b"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: target, Namespace: fixture.Namespace}}
		d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: map[string]string{"run": target}}
		_, err := kubernetes.NewForConfigOrDie(user).AppsV1().Deployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		b.Spec.Targets = append(b.Spec.Targets, v1alpha1.BalancerTarget{Name: target, ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}})
	}
	change(b)
	_, err := versioned.NewForConfigOrDie(user).BalancerV1alpha1().Balancers(fixture.Namespace).Create(ctx, b, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("The Balancer's controller alone", Serial, func() {
	It("works in a cluster that has never heard of machines, with its own lease", func() {
		server := withoutMachines()
		read := running.Watches(server)
		r := start(server, balancerName)
		Eventually(r.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Eventually(func() any {
			return server.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), fixture.Namespace, "balancer")
		}, eventually).ShouldNot(BeNil())
		Expect(server.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), fixture.Namespace, Name)).To(BeNil())
		Eventually(read, eventually).Should(HaveKey("balancers"))
		Consistently(read, time.Second).ShouldNot(Or(HaveKey("pods"), HaveKey("horizontalpodautoscalers")), "there is no Balancer yet")

		createShop(server, 0, func(*v1alpha1.Balancer) {})
		Eventually(replicasOf(server, "a"), eventually).Should(BeEquivalentTo(5))
		Eventually(replicasOf(server, "b"), eventually).Should(BeEquivalentTo(4))
		Eventually(func() string { _, text := r.Get("/metrics"); return text }, eventually).Should(And(
			ContainSubstring(`evenkeel_balancer_replicas{name="shop",namespace="default",what="wanted"} 9`),
			ContainSubstring(`evenkeel_balancer_writes_total{end="done",what="raise"} 2`)))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
	})

	DescribeTable("scales what its flags let it", func(want int, arguments ...string) {
		server := withoutMachines()
		createShop(server, 1, func(*v1alpha1.Balancer) {})
		r := start(server, balancerName, arguments...)
		replicas := replicasOf(server, "a")
		Eventually(r.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Eventually(r.HolderOf("balancer"), eventually).ShouldNot(BeEmpty())
		Eventually(replicas, eventually).Should(BeEquivalentTo(want))
		Consistently(replicas, time.Second).Should(BeEquivalentTo(want))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
	},
		Entry("in its namespace", 5, "--balancer-namespace="+fixture.Namespace),
		Entry("not in another namespace than --balancer-namespace", 1, "--balancer-namespace=other"),
		Entry("not a kind that --balancer-kinds leaves out", 1, "--balancer-kinds=StatefulSet.apps"),
		Entry("a kind of --balancer-kinds", 5, "--balancer-kinds=Deployment.apps"),
	)

	It("reads workloads of --balancer-namespace alone, as a Role there allows", func() {
		server := withoutMachines()
		elsewhere := make(chan sim.Request, 100)
		server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
			if r.User == "workloads" && r.Resource != "" && r.Resource != "nodes" && r.Namespace != fixture.Namespace {
				elsewhere <- r
			}
			return 0, 0
		})
		createShop(server, 1, func(*v1alpha1.Balancer) {})
		start(server, balancerName, "--balancer-namespace="+fixture.Namespace)
		Eventually(replicasOf(server, "a"), eventually).Should(BeEquivalentTo(5))
		Expect(elsewhere).NotTo(Receive())
	})

	DescribeTable("does not count time in which no process watched toward the startup timeout of pods", func(ago time.Duration, late int) {
		server := withoutMachines()
		ctx, client := context.Background(), kubernetes.NewForConfigOrDie(server.ConfigFor("user"))
		server.Skew(-time.Hour)
		_, err := client.CoreV1().Pods(fixture.Namespace).Create(ctx, fixture.Pod("waiting", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "shop", "run": "a"} }), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		server.Skew(0)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "balancer", Namespace: fixture.Namespace}}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To("other"), ptr.To[int32](1)
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-ago)))
		_, err = client.CoordinationV1().Leases(fixture.Namespace).Create(ctx, lease, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		createShop(server, 1, func(b *v1alpha1.Balancer) {
			b.Spec.Policy.Fallback = &v1alpha1.Fallback{StartupTimeoutSeconds: ptr.To[int32](600)}
		})
		r := start(server, balancerName, "--leader-elect-retry-period=200ms")
		Eventually(func(g Gomega) {
			b := &v1alpha1.Balancer{}
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(server.Get(v1alpha1.SchemeGroupVersion.WithResource("balancers"), fixture.Namespace, "shop").Object, b)).To(Succeed())
			g.Expect(b.Status.Targets).NotTo(BeEmpty())
			g.Expect(b.Status.Targets[0].Observed).To(BeEquivalentTo(1))
			g.Expect(b.Status.Targets[0].NotStarted).To(BeEquivalentTo(late))
		}, eventually).Should(Succeed())
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
	},
		Entry("but counts time in which another process held the lease", time.Duration(0), 1),
		Entry("such as the time since another process last held the lease", time.Hour, 0),
	)
})
