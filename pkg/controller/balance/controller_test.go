// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan/plantest"
)

var abc = []string{"a", "b", "c"}

func (c *cluster) deployAll(changes []Change, replicas ...int) {
	for i, r := range replicas {
		c.deploy(NewMember(abc[i], r, changes...))
	}
}

var _ = Describe("The controller", func() {
	It("splits growth before a machine is made for it, in a few writes, and rests", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			made := c.made
			since := len(c.Writes())
			c.scale("a", 8)
			time.Sleep(time.Second)
			Expect(c.sizes(abc...)).To(Equal("4/4/4"), "within a second")
			c.settle()
			Expect(c.ready(false, abc...)).To(Equal("4/4/4"))
			Expect(c.made-made).To(Equal(6), "none was thrown away")
			Expect(c.wrote(since)).To(BeNumerically("<=", 12))
			Expect(c.events()).To(Equal([]string{"a BalanceMoved"}))
			Expect(c.condition("b", plan.ConditionBalanced)).To(Equal("True Even"))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(before)).To(BeZero())
		})
	})

	It("leaves growth of a dedicated pool in it", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 2, ScaleUp, Tainted))
			c.deploy(NewMember("b", 2, ScaleUp))
			c.deploy(NewMember("c", 2, ScaleUp, Tainted))
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 6)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/2/4"))
		})
	})

	It("writes nothing at all where nobody asks for anything", func() {
		play(func(c *cluster) {
			c.deployAll(nil, 5, 2, 1)
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 9)
			c.run("p", "q")
			c.settle()
			Expect(c.wrote(0)).To(BeZero())
			Expect(c.sizes(abc...)).To(Equal("9/2/1"))
		})
	})

	It("spreads shares without a target cluster, and leaves replicas alone", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous, Labelled("p"), Excess("3")}, 6, 1, 1)
			c.Start("balance", program(false))
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("6/1/1"))
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("1/1/1"))
		})
	})

	It("1: decides anew where somebody writes between what it reads and what it writes", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			sent := make(chan string, 100)
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User != "balance" || r.Verb != "patch" {
					return 0, 0
				}
				sent <- r.Name
				return time.Second, 0
			})
			c.scale("a", 8)
			for range 9 { // each write of a move, and of its conditions, is overtaken
				name := <-sent
				c.scale(name, c.size(name)+1)
			}
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("7/7/7"))
			Expect(c.ready(false, abc...)).To(Equal("7/7/7"))
		})
	})

	It("10: leaves a condition that another writes meanwhile", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2)
			sent := make(chan string, 100)
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User != "balance" || r.Verb != "patch" || r.Subresource != "status" {
					return 0, 0
				}
				sent <- r.Name
				return time.Second, 0
			})
			c.Start("balance", controller())
			name := <-sent
			_, err := c.ours.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), name, types.MergePatchType,
				[]byte(`{"status":{"conditions":[{"type":"Available","status":"True"}]}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.condition(name, mcm.MachineDeploymentAvailable)).To(HavePrefix("True"))
			Expect(c.condition(name, plan.ConditionBalanced)).To(HavePrefix("True"))
		})
	})

	It("leaves what others applied alone", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			c.patch("a", `{"metadata":{"annotations":{"`+v1alpha1.AppliedReplicasAnnotation+`":"5"}},"spec":{"replicas":5}}`)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("5/2/2"))
		})
	})

	It("evens out what is uneven, every pod moved at most once, and never fewer machines than replicas", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 6, 3, 1)
			for i := range 10 {
				c.run(fmt.Sprint("p", i))
			}
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			for range 3600 {
				time.Sleep(time.Second)
				if n := Sum(c.ready(false, abc...)); n < 10 {
					Fail(fmt.Sprintf("only %d machines run", n))
				}
			}
			c.settle()
			Expect(c.created).To(Equal(12), "ten there were, and two took the places of two")
			Expect(c.sizes(abc...)).To(Equal("4/3/3"))
			Expect(c.ready(false, abc...)).To(Equal("4/3/3"))
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("-/-/-"))
			Expect(c.moved).To(HaveLen(2))
			for pod, n := range c.moved {
				Expect(n).To(Equal(1), pod)
			}
		})
	})

	It("moves nothing that a budget holds, says so, and moves it when it may", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 4, 2)
			for i := range 6 {
				c.run(fmt.Sprint("p", i))
			}
			c.budget(0)
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/2"))
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
			Expect(c.events()).To(Equal([]string{"a BalanceBlocked"}))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(before)).To(BeZero())
			c.budget(1)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.moved).To(HaveLen(1))
		})
	})

	It("keeps growth where a pod that waits is bound to", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			for i := range 6 {
				c.run(fmt.Sprint("p", i))
			}
			c.Start("balance", controller())
			c.settle()
			c.pod("bound", func(p *corev1.Pod) { InZone("b")(p) })
			c.settle()
			c.scale("b", 3)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("2/3/2"))
		})
	})

	It("spreads a pool's excess, hands it on within a minute of a failure, and takes it back", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("4")}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("2/1/1"))
			Expect(c.ready(true, abc...)).To(Equal("2/1/1"))
			c.set(func() { c.out["c"] = true })
			for _, o := range c.Objects(machineGVR) {
				if o.GetLabels()["name"] == "c" && o.GetAnnotations()[v1alpha1.ReserveAnnotation] != "" {
					Expect(c.ours.MachineV1alpha1().Machines(ns).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{})).To(Succeed())
				}
			}
			for c.condition("a", plan.ConditionShare) != "True FailedOver" {
				time.Sleep(time.Second)
			}
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("2/2/0"))
			time.Sleep(time.Minute)
			Expect(c.ready(true, abc...)).To(Equal("2/2/0"))
			c.set(func() { c.out["c"] = false })
			for c.ready(true, abc...) == "2/2/0" {
				time.Sleep(time.Second)
				Expect(Sum(c.ready(true, abc...))).To(BeNumerically(">=", 4))
			}
			c.settle()
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("2/1/1"))
			Expect(c.ready(true, abc...)).To(Equal("2/1/1"))
		})
	})

	It("decides on no cache that is older than its own writes", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Lag("machinedeployments", sim.Constantly(7*time.Second), "balance")
			tried := 0
			c.OnWrite(func(w sim.Write) error {
				if w.User == "balance" && w.Resource != "events" {
					tried++
				}
				return nil
			})
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 8)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
			Expect(tried).To(Equal(c.wrote(0)), "a write that conflicts, or changes nothing, was decided on something old")
		})
	})

	It("loses nothing that is asked for while its cache is behind", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			c.Lag("machinedeployments", sim.Constantly(5*time.Second), "balance")
			c.scale("a", 8)
			time.Sleep(13 * time.Second)
			Expect(c.annotations(v1alpha1.MoveAnnotation, "b")).To(ContainSubstring("taken"))
			Expect(c.sizes(abc...)).To(Equal("8/4/4"), "a is to lose 4 in two seconds")
			c.scale("a", 11)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("5/5/5"))
		})
	})

	It("ends also where it reads late", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 6, 2, 1)
			c.Lag("machinedeployments", sim.Constantly(7*time.Second), "balance")
			c.Lag("machines", sim.Constantly(3*time.Second), "balance")
			c.Start("balance", controller())
			c.settle()
			c.scale("a", c.size("a")+3)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
		})
	})
})

func (c *cluster) size(name string) int { return int(c.deployment(name).Spec.Replicas) }

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
		})
	})

	It("that puts its cluster to sleep leaves no reserve, and wakes it up with it", func() {
		withGarden(func(c *cluster, garden dynamic.Interface) {
			c.deployAll([]Change{Labelled("p"), Excess("3")}, 1, 1, 1)
			shoot := func(asleep bool) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": ns},
					"spec": map[string]any{"shoot": map[string]any{"spec": map[string]any{"hibernation": map[string]any{"enabled": asleep}}}},
				}}
			}
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
