// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The controller that has images pulled", func() {
	// askedWith plays a story about the pods that pull images, where API servers have these kinds.
	askedWith := func(kinds []sim.Resource, body func(w *storm.World, pods func() int)) {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{Seed: 1, Resources: kinds})
			defer w.End()
			core, _ := world.Clients(w.ConfigFor("user"))
			body(w, func() int {
				GinkgoHelper()
				list, err := core.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{LabelSelector: plan.Label})
				Expect(err).NotTo(HaveOccurred())
				return len(list.Items)
			})
		})
	}
	asked := func(body func(w *storm.World, pods func() int)) { askedWith(askedKinds, body) }
	reserve := func(w *storm.World) {
		_, ours := world.Clients(w.ConfigFor("user"))
		r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: fixture.Namespace}}
		r.Spec.Pools.Names, r.Spec.Replicas = []string{"pool"}, 1
		r.Spec.Prepare = []autoscaling.Preparation{{Namespace: "shop", Images: []string{"a"}}}
		world.Create(ours.AutoscalingV1alpha1().Reserves(fixture.Namespace), r)
	}

	It("starts with the first Reserve that asks for images, and follows it", func() {
		asked(func(w *storm.World, pods func() int) {
			occupied(w)
			w.Start("ours", leader(reservesName, preparationName))
			time.Sleep(time.Minute)
			reserve(w)
			time.Sleep(time.Minute)
			Expect(pods()).To(Equal(1))
		})
	})

	It("keeps the pods while a new process has yet to learn whether there are Reserves", func() {
		asked(func(w *storm.World, pods func() int) {
			occupied(w)
			reserve(w)
			process := w.Start("ours", leader(reservesName, preparationName))
			time.Sleep(time.Minute)
			Expect(pods()).To(Equal(1))
			w.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "ours" && r.Resource == "" {
					return 20 * time.Second, 0
				}
				return 0, 0
			})
			before := len(w.Writes())
			process.Restart()
			time.Sleep(5 * time.Minute)
			Expect(pods()).To(Equal(1))
			Expect(world.WritesOf(w, "ours", before)).NotTo(ContainElement(HaveField("Resource", "pods")))
		})
	})

	It("deletes the pods that are left where the API server has no Reserves", func() {
		kinds := slices.DeleteFunc(slices.Clone(askedKinds), func(r sim.Resource) bool { return r.Name == "reserves" })
		askedWith(kinds, func(w *storm.World, pods func() int) {
			occupied(w)
			userOf(w).pod(fixture.Pod("left", func(p *corev1.Pod) { p.Spec.NodeName, p.Labels = "spare", map[string]string{plan.Label: "x"} }))
			w.Start("ours", leader(reservesName, preparationName))
			time.Sleep(2 * time.Minute)
			Expect(pods()).To(BeZero())
		})
	})

	It("has the reserve say what is wrong as soon as that is known", func() {
		asked(func(w *storm.World, pods func() int) {
			deployments := occupied(w).ours.MachineV1alpha1().MachineDeployments(fixture.Namespace)
			world.Patch(deployments, "pool", `{"metadata":{"annotations":{%q:"1",%q:"[{namespace: shop, images: [a]}]"}},"spec":{"excessReplicas":1}}`, api.AppliedExcessAnnotation, api.PrepareAnnotation)
			w.Start("ours", leader(mcmName, preparationName))
			time.Sleep(time.Minute)
			time.Sleep(parsed().Preparation.Patience - 50*time.Second)
			Expect(pods()).To(Equal(1))
			d, err := deployments.Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Status.Conditions).To(ContainElement(HaveField("Reason", "PreparationFailed")))
		})
	})

	It("deletes the pods that are left where nothing is asked for any more", func() {
		asked(func(w *storm.World, pods func() int) {
			userOf(w).pod(fixture.Pod("left", func(p *corev1.Pod) { p.Labels = map[string]string{plan.Label: "x"} }))
			Expect(pods()).To(Equal(1))
			w.Start("ours", leader(preparationName))
			time.Sleep(time.Minute)
			Expect(pods()).To(BeZero())
		})
	})

	It("does not start before images are asked for, also where pods may not be read", func() {
		asked(func(w *storm.World, pods func() int) {
			w.Target.Trouble("pods", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "ours")
			var p *process
			w.Start("ours", func(ctx context.Context, config *rest.Config) (err error) {
				if p, err = processOf(config, []string{preparationName}); err != nil {
					return err
				}
				return p.runLeader(ctx)
			})
			time.Sleep(time.Minute)
			families, err := p.registry.Gather()
			Expect(err).NotTo(HaveOccurred())
			Expect(families).NotTo(ContainElement(HaveField("GetName()", HavePrefix("evenkeel_preparation_"))))
		})
	})
})
