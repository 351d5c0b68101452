// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The controller of Reserves", Serial, func() {
	It("reads no machines before there is a Reserve, and withdraws what is left of one", func() {
		server := sim.New(sim.Options{Resources: slices.Concat(sim.Core, sim.Machine, []sim.Resource{{
			Group: autoscaling.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true,
		}})})
		kubeconfig, read := running.Kubeconfig(server, "reserves"), running.Watches(server)
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--controllers=reserves")
		Eventually(read, eventually).Should(And(HaveKey("reserves"), HaveKey("machinedeployments")))
		Consistently(read, time.Second).ShouldNot(HaveKey("machines"), "there is no Reserve yet")
		Eventually(r.Status("/readyz"), eventually).Should(Equal(http.StatusOK), "there may never be a Reserve")

		ctx, ours := context.Background(), versioned.NewForConfigOrDie(server.ConfigFor("user"))
		d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, Annotations: map[string]string{machine.RequestedExcessAnnotation: "gone=2"}}}
		_, err := ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		requested := func() string {
			return server.Get(machine.SchemeGroupVersion.WithResource("machinedeployments"), fixture.Namespace, "pool").GetAnnotations()[machine.RequestedExcessAnnotation]
		}
		Eventually(requested, eventually).Should(BeEmpty())
		Expect(read()).To(HaveKey("machines"))
		reserve := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: fixture.Namespace}}
		reserve.Spec.Pools.Names, reserve.Spec.Replicas = []string{"pool"}, 3
		_, err = ours.AutoscalingV1alpha1().Reserves(fixture.Namespace).Create(ctx, reserve, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(requested, eventually).Should(Equal("queue=3"))
		Eventually(func() string { _, text := r.Get("/metrics"); return text }, eventually).Should(
			ContainSubstring(`evenkeel_reserves_machines{name="queue",namespace="default",what="desired"} 3`))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
	})
})

var _ = It("Reserves of another namespace are left to the manager of its machines", func() {
	storm.Bubble(suite, func() {
		w := storm.NewApart(sim.Options{Seed: 1, Resources: bufferKinds})
		defer w.End()
		ours := buffered(w.ConfigFor("user"))
		for _, namespace := range []string{fixture.Namespace, "other"} {
			r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: namespace}}
			r.Spec.Pools.Names, r.Spec.Replicas = []string{"pool"}, 3
			world.Create(ours.AutoscalingV1alpha1().Reserves(namespace), r)
		}
		w.Start("ours", leader(reservesName))
		time.Sleep(time.Minute)
		reserves := autoscaling.SchemeGroupVersion.WithResource("reserves")
		Expect(world.Stored[autoscaling.Reserve](w, reserves, fixture.Namespace, "queue").Status.DesiredReplicas).To(BeEquivalentTo(3))
		Expect(world.Stored[autoscaling.Reserve](w, reserves, "other", "queue").Status).To(BeZero())
	})
})

var _ = DescribeTable("What is left of a Reserve is seen",
	func(annotations map[string]string, is bool) {
		Expect(isReserve(&machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})).To(Equal(is))
	},
	Entry("its request", map[string]string{machine.RequestedExcessAnnotation: "gone=2"}, true),
	Entry("its owners, though another client has removed its request", map[string]string{machine.DedicatedAnnotation: "shop=2"}, true),
	Entry("not in other annotations", map[string]string{machine.BoundsAnnotation: "1:9"}, false),
)

var bufferKinds = slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, []sim.Resource{
	{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true},
	{Group: v1beta1.GroupName, Version: "v1beta1", Name: "capacitybuffers", Kind: "CapacityBuffer", Namespaced: true, Status: true, Generation: true},
})

// buffered has a MachineDeployment whose machines have four CPUs, and a PodTemplate for chunks with one CPU.
func buffered(config *rest.Config) versioned.Interface {
	GinkgoHelper()
	core, ours := world.Clients(config)
	class := &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: fixture.Namespace}, NodeTemplate: &mcm.NodeTemplate{
		Capacity: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")},
	}}
	world.Create(ours.MachineV1alpha1().MachineClasses(fixture.Namespace), class)
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, Annotations: map[string]string{machine.BoundsAnnotation: "1:9"}}}
	d.Spec.Replicas, d.Spec.Template.Spec.Class.Name = 3, "large"
	world.Create(ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), d)
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	template.Template.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	world.Create(core.CoreV1().PodTemplates("shop"), template)
	return ours
}

func bufferOf(strategy string) *v1beta1.CapacityBuffer {
	return &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: v1beta1.CapacityBufferSpec{
		ProvisioningStrategy: ptr.To(strategy), PodTemplateRef: &v1beta1.LocalObjectRef{Name: "web"}, Replicas: ptr.To[int32](5),
	}}
}

var _ = Describe("The controller of CapacityBuffers", Serial, func() {
	It("reads nothing of workloads before there is a buffer of its strategy, and then requests machines through a Reserve", func() {
		server := sim.New(sim.Options{Resources: bufferKinds})
		ours := buffered(server.ConfigFor("user"))
		buffers := ours.CapacityBufferV1beta1().CapacityBuffers("shop")
		ctx := context.Background()
		_, err := buffers.Create(ctx, bufferOf(v1beta1.StrategyActive), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, read := running.Kubeconfig(server, "buffers"), running.Watches(server)
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig, "--controllers=reserves,capacitybuffer")
		Eventually(read, eventually).Should(HaveKey("capacitybuffers"))
		Consistently(read, time.Second).ShouldNot(HaveKey("podtemplates"), "the buffer is cluster-autoscaler's")
		Expect(buffers.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		_, err = buffers.Create(ctx, bufferOf(v1beta1.StrategyReserved), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		requested := func() string {
			return server.Get(machine.SchemeGroupVersion.WithResource("machinedeployments"), fixture.Namespace, "pool").GetAnnotations()[machine.RequestedExcessAnnotation]
		}
		Eventually(requested, eventually).Should(Equal("capacity-buffers.pool=2"))
		Eventually(func() string { _, text := r.Get("/metrics"); return text }, eventually).Should(ContainSubstring("evenkeel_capacitybuffer_chunks 5"))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
	})

	DescribeTable("serves a buffer that fills once",
		func(want string, arguments ...string) {
			server := sim.New(sim.Options{Resources: bufferKinds})
			buffers := buffered(server.ConfigFor("user")).CapacityBufferV1beta1().CapacityBuffers("shop")
			b := bufferOf(v1beta1.StrategyReserved)
			b.Spec.RefillStrategy = ptr.To(v1beta1.RefillNone)
			_, err := buffers.Create(context.Background(), b, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			kubeconfig := running.Kubeconfig(server, "buffers")
			r := start(server, append(arguments, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig, "--controllers=reserves,capacitybuffer")...)
			Eventually(func() (string, error) {
				b, err := buffers.Get(context.Background(), "web", metav1.GetOptions{})
				if c := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReadyForProvisioning); c != nil {
					return c.Reason, err
				}
				return "", err
			}, eventually).Should(Equal(want))
			r.Stop()
			Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
		},
		Entry("not by default", reason.RefillNotEnabled),
		Entry("with --capacity-buffer-fill-once", reason.RefillInvalid, "--capacity-buffer-fill-once"), // its PodTemplate has no labels
	)

	It("looks for workloads of kinds that it does not watch", func() {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{Seed: 1, Resources: bufferKinds})
			defer w.End()
			buffers := buffered(w.ConfigFor("user")).CapacityBufferV1beta1().CapacityBuffers("shop")
			b := bufferOf(v1beta1.StrategyReserved)
			b.Spec.PodTemplateRef, b.Spec.ScalableRef = nil, &v1beta1.ScalableRef{APIGroup: "example.com", Kind: "Rollout", Name: "web"}
			world.Create(buffers, b)
			w.Start("ours", leader(buffersName))
			time.Sleep(time.Minute)
			b, err := buffers.Get(context.Background(), "web", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(b.Status.Conditions).To(ContainElement(HaveField("Reason", reason.KindNotSupported)))
		})
	})

	It("deletes what is left of buffers where there can be none any more", func() {
		server := sim.New(sim.Options{Resources: slices.DeleteFunc(slices.Clone(bufferKinds), func(r sim.Resource) bool { return r.Name == "capacitybuffers" })})
		reserves := buffered(server.ConfigFor("user")).AutoscalingV1alpha1().Reserves(fixture.Namespace)
		ctx := context.Background()
		for _, r := range []*autoscaling.Reserve{plan.NewReserve(fixture.Namespace, plan.Request{Pool: "pool", Machines: 2}), {ObjectMeta: metav1.ObjectMeta{Name: "mine"}}} {
			_, err := reserves.Create(ctx, r, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		withdraw := withdrawing(ctx, reserves, capacitybuffer.Withdraw)
		names := func() (all []string) {
			list, err := reserves.List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			for _, r := range list.Items {
				all = append(all, r.Name)
			}
			return all
		}
		withdraw()
		Expect(names()).To(ConsistOf("mine", "capacity-buffers.pool"), "the API server may have just begun to serve")
		withdraw()
		Expect(names()).To(ConsistOf("mine"))
	})

	It("tries once more where that fails, and not again once it is done", func() {
		calls := 0
		withdraw := withdrawing(context.Background(), nil, func(context.Context, autoscalingclient.ReserveInterface) error {
			if calls++; calls == 1 {
				return errors.New("refused")
			}
			return nil
		})
		for range 5 {
			withdraw()
		}
		Expect(calls).To(Equal(2))
	})
})

var _ = It("What Reserves requested is withdrawn where the API server does not serve them any more", func() {
	storm.Bubble(suite, func() {
		w := storm.NewApart(sim.Options{Seed: 1})
		defer w.End()
		_, ours := world.Clients(w.ConfigFor("user"))
		world.Create(ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Name: "pool", Namespace: fixture.Namespace, Annotations: map[string]string{machine.RequestedExcessAnnotation: "gone=2"},
		}})
		w.Start("ours", leader("reserves"))
		time.Sleep(reservesRetry / 2)
		Expect(requestedIn(w)).To(Equal(map[string]string{"pool": "gone=2"}), "the API server may have just begun to serve")
		time.Sleep(reservesRetry)
		Expect(requestedIn(w)).To(Equal(map[string]string{"pool": ""}))
	})
})
