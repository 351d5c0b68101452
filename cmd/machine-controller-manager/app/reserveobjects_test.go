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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The controller of Reserves", Serial, func() {
	It("reads no machines before there is a Reserve, and withdraws what is left of one", func() {
		server := sim.New(sim.Options{Resources: slices.Concat(sim.Core, sim.Machine, []sim.Resource{{
			Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true,
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
		reserve := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: fixture.Namespace}}
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

var _ = DescribeTable("What is left of a Reserve is seen",
	func(annotations map[string]string, is bool) {
		Expect(isReserve(&machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})).To(Equal(is))
	},
	Entry("its request", map[string]string{machine.RequestedExcessAnnotation: "gone=2"}, true),
	Entry("its owners, though another client has removed its request", map[string]string{machine.DedicatedAnnotation: "shop=2"}, true),
	Entry("not in other annotations", map[string]string{machine.BoundsAnnotation: "1:9"}, false),
)
