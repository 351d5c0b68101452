// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads/scheme"
	workloadinformers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
)

// as is a client of the service account that the manifests make for the Balancer's controller.
func as(account string) *rest.Config {
	config := rest.CopyConfig(cluster.Config())
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:" + account, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return config
}

// runBalancer runs the controller until the spec ends.
func runBalancer(config *rest.Config) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	core, ours := kubernetes.NewForConfigOrDie(config), workloads.NewForConfigOrDie(config)
	shared, balancers := informers.NewSharedInformerFactory(core, 0), workloadinformers.NewSharedInformerFactory(ours, 0)
	events := record.NewBroadcaster(record.WithContext(ctx))
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.CoreV1().Events("")})
	c, err := balancer.New(
		balancer.Clients{Dynamic: dynamic.NewForConfigOrDie(config), Discovery: discovery.NewDiscoveryClientForConfigOrDie(config), Balancers: ours.BalancerV1alpha1()},
		balancer.Informers{Balancers: balancers.Balancer().V1alpha1().Balancers(), Pods: shared.Core().V1().Pods(), Autoscalers: shared.Autoscaling().V2().HorizontalPodAutoscalers(), Nodes: shared.Core().V1().Nodes()},
		events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "balancer"}), balancer.Options{})
	Expect(err).NotTo(HaveOccurred())
	shared.StartWithContext(ctx)
	balancers.StartWithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(ended, 5*time.Second).Should(BeClosed())
		shared.Shutdown()
		balancers.Shutdown()
		events.Shutdown()
	})
}

func workload(name string) *appsv1.Deployment {
	labels := map[string]string{"app": "shop", "run": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "work", Image: "registry.example/work:1"}}
	return d
}

var _ = Describe("The Balancer's controller, as its service account", func() {
	It("scales Deployments and MachineDeployments, reports, and follows kubectl scale", func(ctx context.Context) {
		Expect(cluster.Apply(ctx, "kubernetes/deploy/balancer/access.yaml")).To(Succeed())
		_, err := kubernetes.NewForConfigOrDie(as("evenkeel-balancer")).CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
		Expect(errors.IsForbidden(err)).To(BeTrue(), "%v", err)
		deployments := kubernetes.NewForConfigOrDie(cluster.Config()).AppsV1().Deployments("default")
		for _, name := range []string{"shop-a", "shop-b"} {
			_, err := deployments.Create(ctx, workload(name), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx context.Context) {
				Expect(deployments.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			})
		}
		md := deployment("shop-machines")
		create(ctx, md)
		runBalancer(as("evenkeel-balancer"))

		object := changed(`{targets: [
			{name: a, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop-a}, minReplicas: 1, maxReplicas: 7},
			{name: b, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop-b}, minReplicas: 1, maxReplicas: 4},
			{name: m, scaleTargetRef: {apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineDeployment, name: shop-machines}}],
			policy: {priorities: {targetOrder: [a, b, m]}}}`)
		_, err = balancers().Create(ctx, object, metav1.CreateOptions{FieldValidation: "Strict"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(balancers().Delete(ctx, "plain", metav1.DeleteOptions{})).To(Succeed())
		})
		sizes := func() string {
			var all []any
			for _, name := range []string{"shop-a", "shop-b"} {
				d, err := deployments.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				all = append(all, *d.Spec.Replicas)
			}
			m, err := machines().MachineDeployments("default").Get(ctx, "shop-machines", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%d/%d/%d", append(all, m.Spec.Replicas)...)
		}
		// Meant is 7/3/0. Nothing gets ready here, so the machines keep what they have, and the others get what remains.
		Eventually(sizes, 10*time.Second, 20*time.Millisecond).Should(Equal("5/3/3"))
		out, err := kubectl("", "scale", "balancer/plain", "--replicas=14")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(sizes, 10*time.Second, 20*time.Millisecond).Should(Equal("7/4/3"))

		client := workloads.NewForConfigOrDie(cluster.Config()).BalancerV1alpha1().Balancers("default")
		var b *api.Balancer
		Eventually(func() (map[string]string, error) {
			var err error
			b, err = client.Get(ctx, "plain", metav1.GetOptions{})
			all := map[string]string{}
			for _, c := range b.Status.Conditions {
				all[c.Type] = string(c.Status) + " " + c.Reason
			}
			return all, err
		}, 10*time.Second).Should(Equal(map[string]string{
			"Balancing": "True Completed", "Ready": "True UnderControl", "Balanced": "True AtGoal", "WithinLimits": "True Room",
			"FallbackActive": "False NotNeeded", "TargetsResolved": "True Resolved",
		}))
		Expect(b.Status.ObservedGeneration).To(Equal(b.Generation))
		Eventually(func() (string, error) { return kubectl("", "describe", "balancer", "plain") }, 10*time.Second).Should(ContainSubstring("Scaled target a from 1 to 5"))
		Consistently(func() (string, error) {
			again, err := client.Get(ctx, "plain", metav1.GetOptions{})
			return again.ResourceVersion, err
		}, 2*time.Second).Should(Equal(b.ResourceVersion))
	})

	It("scales ReplicationControllers, which have no apiVersion but v1", func(ctx context.Context) {
		Expect(cluster.Apply(ctx, "kubernetes/deploy/balancer/access.yaml")).To(Succeed())
		core := kubernetes.NewForConfigOrDie(cluster.Config()).CoreV1().ReplicationControllers("default")
		for _, name := range []string{"shop-a", "shop-b"} {
			template := workload(name).Spec.Template
			_, err := core.Create(ctx, &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ReplicationControllerSpec{
				Replicas: ptr.To[int32](0), Selector: template.Labels, Template: &template}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx context.Context) {
				Expect(core.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			})
		}
		runBalancer(as("evenkeel-balancer"))
		_, err := balancers().Create(ctx, changed(`{replicas: 6, policy: {policyName: even, priorities: null}, targets: [
			{name: a, scaleTargetRef: {kind: ReplicationController, name: shop-a}, observer: Pods},
			{name: b, scaleTargetRef: {apiVersion: v1, kind: ReplicationController, name: shop-b}}]}`), metav1.CreateOptions{FieldValidation: "Strict"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(balancers().Delete(ctx, "plain", metav1.DeleteOptions{})).To(Succeed())
		})
		Eventually(func() (sizes []int32, err error) {
			list, err := core.List(ctx, metav1.ListOptions{})
			for _, r := range list.Items {
				sizes = append(sizes, *r.Spec.Replicas)
			}
			return sizes, err
		}, 10*time.Second).Should(Equal([]int32{3, 3}))
	})
})
