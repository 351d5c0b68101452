// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// worker is as a Gardener writes it, from the documentation of the type: a pool over three zones.
func worker(status ...string) *unstructured.Unstructured {
	deployments := []any{}
	for i, text := range status {
		b, err := v1alpha1.ParseBounds(text)
		Expect(err).NotTo(HaveOccurred())
		deployments = append(deployments, map[string]any{"name": abc[i], "minimum": int64(b.Min), "maximum": int64(b.Max), "priority": int64(0)})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker",
		"metadata": map[string]any{"name": "local", "namespace": ns},
		"spec": map[string]any{
			"type": "local", "region": "here", "secretRef": map[string]any{"name": "cloudprovider", "namespace": ns},
			"pools": []any{map[string]any{
				"name": "p", "minimum": int64(3), "maximum": int64(9), "maxSurge": int64(1), "maxUnavailable": int64(0),
				"machineType": "large", "zones": []any{"a", "b", "c"},
				"annotations": map[string]any{v1alpha1.PoolExcessAnnotation: "4"},
			}},
		},
		"status": map[string]any{"machineDeployments": deployments},
	}}
}

// shoot is the Cluster of a Shoot that sleeps, or is awake.
func shoot(asleep bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": ns},
		"spec": map[string]any{"shoot": map[string]any{"spec": map[string]any{"hibernation": map[string]any{"enabled": asleep}}}},
	}}
}

var _ = Describe("A Gardener", func() {
	withGarden := func(body func(c *cluster, garden dynamic.Interface)) {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1, Resources: append(served, gardenKinds...)})
			defer c.End()
			body(c, dynamic.NewForConfigOrDie(c.ConfigFor("gardener")))
		})
	}
	workers := v1alpha1.SchemeGroupVersion.WithResource("workers")
	workers.Group = "extensions.gardener.cloud"
	clusters := workers.GroupVersion().WithResource("clusters")
	ctx := context.Background()

	put := func(garden dynamic.Interface, w *unstructured.Unstructured) {
		GinkgoHelper()
		i := garden.Resource(workers).Namespace(ns)
		status := w.Object["status"]
		live, err := i.Get(ctx, w.GetName(), metav1.GetOptions{})
		if err != nil {
			live, err = i.Create(ctx, w, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		live.Object["status"] = status
		_, err = i.UpdateStatus(ctx, live, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	It("gives bounds by its Worker, and they follow it", func() {
		withGarden(func(c *cluster, garden dynamic.Interface) {
			c.deployAll([]Change{Labelled("p"), Excess("4")}, 1, 1, 1)
			c.Start("balance", controller())
			put(garden, worker("1:3", "1:3", "1:3"))
			c.settle()
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("1:3:2/1:3:1/1:3:1"))
			put(garden, worker("2:4", "1:3", "1:2"))
			c.settle()
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("2:4:2/1:3:1/1:2:1"))
			c.annotate("b", v1alpha1.BoundsAnnotation, "1:9")
			put(garden, worker("2:5", "1:5", "1:5"))
			c.settle()
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("2:5:2/1:9/1:5:1"))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(before)).To(BeZero())
			Expect(garden.Resource(workers).Namespace(ns).Delete(ctx, "local", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})).To(Succeed())
			c.settle()
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("-/1:9/-"), "while the Worker is being deleted")
		})
	})

	It("reports once that its Workers have been read", func() {
		withGarden(func(c *cluster, garden dynamic.Interface) {
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "balance" && r.Resource == "workers" {
					return 10 * time.Second, 0
				}
				return 0, 0
			})
			var read atomic.Int32
			c.Start("balance", adjusted(func(o *Options) { o.WorkersRead = func() { read.Add(1) } }))
			time.Sleep(9 * time.Second)
			Expect(read.Load()).To(BeZero())
			time.Sleep(time.Hour)
			Expect(read.Load()).To(BeEquivalentTo(1))
		})
	})

	It("is found soon after an API server that did not answer does", func() {
		withGarden(func(c *cluster, garden dynamic.Interface) {
			c.deployAll([]Change{Labelled("p"), Excess("4")}, 1, 1, 1)
			put(garden, worker("1:3", "1:3", "1:3"))
			c.Down(true, "balance")
			c.Start("balance", controller())
			time.Sleep(time.Second)
			c.Down(false, "balance")
			time.Sleep(time.Minute)
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("1:3:2/1:3:1/1:3:1"))
		})
	})

	It("that puts its cluster to sleep leaves no reserve, and wakes it up with it", func() {
		withGarden(func(c *cluster, garden dynamic.Interface) {
			c.deployAll([]Change{Labelled("p"), Excess("3")}, 1, 1, 1)
			put(garden, worker("1:3", "1:3", "1:3"))
			made, err := garden.Resource(clusters).Create(ctx, shoot(false), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("balance", controller())
			c.settle()
			Expect(c.ready(true, abc...)).To(Equal("1/1/1"))
			asleep := shoot(true)
			asleep.SetResourceVersion(made.GetResourceVersion())
			made, err = garden.Resource(clusters).Update(ctx, asleep, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			for _, name := range abc {
				c.scale(name, 0)
			}
			c.settle()
			Expect(c.Objects(machineGVR)).To(BeEmpty())
			awake := shoot(false)
			awake.SetResourceVersion(made.GetResourceVersion())
			_, err = garden.Resource(clusters).Update(ctx, awake, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.ready(true, abc...)).To(Equal("1/1/1"))
		})
	})

	DescribeTable("is read before shares change when the process starts again", func(asleep bool, want string) {
		withGarden(func(c *cluster, garden dynamic.Interface) {
			c.deployAll([]Change{Labelled("p"), Excess("3")}, 0, 0, 0)
			put(garden, worker("0:3", "0:3", "0:3"))
			_, err := garden.Resource(clusters).Create(ctx, shoot(asleep), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			process := c.Start("balance", controller())
			c.settle()
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal(want))
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "balance" && (r.Resource == "clusters" || r.Resource == "") {
					return 3 * time.Second, 0
				}
				return 0, 0
			})
			before := len(c.Writes())
			process.Restart()
			c.settle()
			Expect(c.wrote(before)).To(BeZero())
		})
	},
		Entry("of a cluster that sleeps", true, "0/0/0"),
		Entry("of a cluster that is awake and runs nothing but its reserve", false, "1/1/1"),
	)

	It("whose Worker must not be read is asked rarely, and the worker's annotation counts until it may", func() {
		withGarden(func(c *cluster, garden dynamic.Interface) {
			whole := func(m *plan.Member) {
				m.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{v1alpha1.BoundsAnnotation: "3:9:3"}
			}
			c.deployAll([]Change{Labelled("p"), whole}, 1, 1, 1)
			put(garden, worker("1:2", "1:2", "1:2"))
			for _, kind := range []string{"workers", "clusters"} {
				c.Trouble(kind, sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "balance")
			}
			c.Start("balance", controller())
			c.settle()
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("1:3:1/1:3:1/1:3:1"))
			Expect(c.ready(true, abc...)).To(Equal("1/1/1"))
			Expect(c.condition("a", plan.ConditionRights)).To(Equal("False Forbidden"))
			before, asked := len(c.Writes()), c.Struck()["403 on read"]
			time.Sleep(24 * time.Hour)
			Expect(c.Struck()["403 on read"] - asked).To(BeNumerically("~", 2*24*6, 4))
			Expect(c.wrote(before)).To(BeZero())

			for _, name := range abc {
				c.scale(name, 0)
			}
			c.settle()
			Expect(c.Objects(machineGVR)).To(BeEmpty(), "it is hibernated")
			for _, name := range abc {
				c.scale(name, 1)
			}
			c.settle()
			Expect(c.ready(true, abc...)).To(Equal("1/1/1"))

			c.Trouble("workers", sim.Trouble{}, "balance")
			time.Sleep(access.RetryEvery)
			c.settle()
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("1:2:1/1:2:1/1:2:1"))
			Expect(c.condition("a", plan.ConditionRights)).To(Equal("False Forbidden"), "another right is missing")
			c.Trouble("clusters", sim.Trouble{}, "balance")
			time.Sleep(access.RetryEvery)
			c.settle()
			Expect(c.condition("a", plan.ConditionRights)).To(BeEmpty())
		})
	})

	It("that is not there leaves bounds to flags", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("3")}, 1, 1, 1)
			c.Start("balance", controller(func(s *plan.Settings) { s.Bounds = map[string]v1alpha1.Bounds{"a": {Min: 1, Max: 2}} }))
			c.settle()
			Expect(c.annotations(v1alpha1.BoundsAnnotation, abc...)).To(Equal("1:2:1/-/-"))
		})
	})
})
