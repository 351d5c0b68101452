// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The controller of ProvisioningRequests", func() {
	kinds := slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, []sim.Resource{
		{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true},
		{Group: provisioningv1.GroupName, Version: "v1", Name: "provisioningrequests", Kind: "ProvisioningRequest", Namespaced: true, Status: true, Generation: true},
	})

	It("answers the first request, though nothing else reads pods", func() {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{Seed: 1, Resources: kinds})
			defer w.End()
			core, ours := world.Clients(w.ConfigFor("user"))
			w.Start("ours", leader("booking"))
			time.Sleep(time.Minute)
			world.Create(core.CoreV1().PodTemplates("jobs"), &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "one"}})
			world.Create(ours.ProvisioningRequestV1().ProvisioningRequests("jobs"), &provisioningv1.ProvisioningRequest{
				ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "one"}, Spec: provisioningv1.ProvisioningRequestSpec{
					ProvisioningClassName: provisioningv1.ClassReserved, Parameters: map[string]provisioningv1.Parameter{provisioningv1.NoRetryParameter: "true"},
					PodSets: []provisioningv1.PodSet{{PodTemplateRef: provisioningv1.Reference{Name: "one"}, Count: 1}},
				},
			})
			time.Sleep(time.Minute)
			request := world.Stored[provisioningv1.ProvisioningRequest](w, provisioningv1.SchemeGroupVersion.WithResource("provisioningrequests"), "jobs", "one")
			Expect(request.State()).To(Equal(provisioningv1.StateFailed), "there is no reserve")
		})
	})

	It("deletes what is left of requests that have gone while no process ran", func() {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{Seed: 1, Resources: kinds})
			defer w.End()
			_, ours := world.Clients(w.ConfigFor("user"))
			left := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: plan.ReserveName("pool"), Labels: map[string]string{plan.OwnLabel: "true"}}}
			left.Spec.Pools.Names, left.Spec.Replicas = []string{"pool"}, 2
			world.Create(ours.AutoscalingV1alpha1().Reserves(fixture.Namespace), left)
			w.Start("ours", leader("booking"))
			time.Sleep(time.Minute)
			Expect(w.Objects(autoscaling.SchemeGroupVersion.WithResource("reserves"))).To(BeEmpty())
		})
	})
})
