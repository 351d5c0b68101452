// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/reachability"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// probed replaces the probe of a cluster by one that is answered from a moment on.
func probed(cluster **reachability.Cluster, name string, answers <-chan struct{}) {
	*cluster = reachability.New(name, func(ctx context.Context) (string, error) {
		select {
		case <-answers:
			return "", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, reachability.Options{})
}

// unanswered runs a controller as the process that leads does, until a cluster is silent whose probes are
// answered from a moment on.
func unanswered(w *storm.World, controller, silent string, answers <-chan struct{}) (p *process) {
	w.Start("ours", func(ctx context.Context, config *rest.Config) (err error) {
		if p, err = processOf(config, []string{controller}); err != nil {
			return err
		}
		probed(map[string]**reachability.Cluster{"control": &p.clusters.control, "target": &p.clusters.target}[silent], silent, answers)
		return p.runLeader(ctx)
	})
	time.Sleep(time.Minute)
	return p
}

// askedKinds are the kinds of all controllers.
var askedKinds = slices.Concat(bufferKinds, []sim.Resource{
	{Group: provisioningv1.GroupName, Version: "v1", Name: "provisioningrequests", Kind: "ProvisioningRequest", Namespaced: true, Status: true, Generation: true},
	{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass", Type: &storagev1.StorageClass{}},
	{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver", Type: &storagev1.CSIDriver{}},
})

// occupied is a pool with a machine that is full, and one in reserve.
func occupied(w *storm.World) *user {
	u := userOf(w)
	u.pool()
	u.machine("full", false, fixture.Pod("first", full))
	u.machine("spare", true)
	return u
}

var _ = DescribeTable("While the probes of a cluster have no answer, a controller writes nothing. Then it does, and has metrics:",
	func(controller, clusters string, create func(w *storm.World)) {
		for silent := range strings.FieldsSeq(clusters) {
			storm.Bubble(suite, func() {
				w := storm.NewApart(sim.Options{Seed: 1, Resources: askedKinds})
				defer w.End()
				answers := make(chan struct{})
				p := unanswered(w, controller, silent, answers)
				create(w)
				before := len(w.Writes())
				time.Sleep(5 * time.Minute)
				Expect(world.WritesOf(w, "ours", before)).To(BeEmpty(), silent)
				close(answers)
				time.Sleep(time.Minute)
				Expect(world.WritesOf(w, "ours", before)).NotTo(BeEmpty(), silent)
				families, err := p.registry.Gather()
				Expect(err).NotTo(HaveOccurred())
				Expect(families).To(ContainElement(HaveField("GetName()", HavePrefix("evenkeel_"+controller+"_"))))
			})
		}
	},
	Entry(releaseName, releaseName, "control target", func(w *storm.World) {
		occupied(w).pod(fixture.Pod("waits", full, world.MarkUnschedulable))
	}),
	Entry(balanceName, balanceName, "control", func(w *storm.World) {
		u := userOf(w)
		for _, zone := range []string{"a", "b"} {
			world.Create(u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), world.MachineDeployment(zone, 0, func(d *api.MachineDeployment) {
				d.Labels = map[string]string{pools: "p"}
				d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: "2"}
			}))
		}
	}),
	Entry(reservesName, reservesName, "control", func(w *storm.World) {
		r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: fixture.Namespace}}
		r.Spec.Pools.Names, r.Spec.Replicas = []string{"pool"}, 3
		world.Create(buffered(w.ConfigFor("user")).AutoscalingV1alpha1().Reserves(fixture.Namespace), r)
	}),
	Entry(buffersName, buffersName, "control target", func(w *storm.World) {
		world.Create(buffered(w.ConfigFor("user")).CapacityBufferV1beta1().CapacityBuffers("shop"), bufferOf(v1beta1.StrategyReserved))
	}),
	Entry(bookingName, bookingName, "control target", func(w *storm.World) {
		r := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "shop"}}
		r.Spec.ProvisioningClassName = provisioningv1.ClassReserved
		r.Spec.PodSets = []provisioningv1.PodSet{{PodTemplateRef: provisioningv1.Reference{Name: "web"}, Count: 1}}
		world.Create(buffered(w.ConfigFor("user")).ProvisioningRequestV1().ProvisioningRequests("shop"), r)
	}),
	Entry(preparationName, preparationName, "control target", func(w *storm.World) {
		u := occupied(w)
		world.Create(u.core.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		world.Patch(u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), "pool", `{"metadata":{"annotations":{%q:"[{namespace: shop, images: [a]}]"}}}`, api.PrepareAnnotation)
	}),
)

var _ = It("While the probes of the target cluster have no answer, growth stays in its zone", func() {
	storm.Bubble(suite, func() {
		w := storm.NewApart(sim.Options{Seed: 1, Resources: askedKinds})
		defer w.End()
		unanswered(w, balanceName, "target", nil)
		_, ours := world.Clients(w.ConfigFor("user"))
		deployments := ours.MachineV1alpha1().MachineDeployments(fixture.Namespace)
		for _, zone := range []string{"a", "b"} {
			world.Create(ours.MachineV1alpha1().MachineClasses(fixture.Namespace), fixture.MachineClass(zone, func(k *mcm.MachineClass) {
				k.NodeTemplate = &mcm.NodeTemplate{InstanceType: "large", Region: "here", Zone: zone, Capacity: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}}
			}))
			world.Create(deployments, world.MachineDeployment(zone, 0, func(d *api.MachineDeployment) {
				d.Annotations[api.BalanceAnnotation], d.Spec.Template.Spec.Class.Name = string(api.BalanceScaleUp), zone
			}))
		}
		time.Sleep(time.Minute)
		world.Patch(deployments, "a", `{"spec":{"replicas":4}}`)
		time.Sleep(5 * time.Minute)
		for zone, want := range map[string]int{"a": 4, "b": 0} {
			d, err := deployments.Get(context.Background(), zone, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.Replicas).To(BeEquivalentTo(want), zone)
			Expect(d.Status.Conditions).To(ContainElement(HaveField("Reason", reachability.Reason)), zone)
		}
	})
})
