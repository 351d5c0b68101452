// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan/plantest"
)

var usual = Options{Settings: UsualSettings}

// patient are options for storms, which hold watches without a sign: a pod that waits beside room
// that was taken meanwhile would count as doubtful.
var patient = Options{Settings: func() plan.Settings {
	s := UsualSettings
	s.Patience = 10 * time.Minute
	return s
}()}

// tries counts the raises that the controller asks for from now on, whatever comes of them.
func (c *cluster) tries() func() int {
	n := 0
	c.OnWrite(func(w sim.Write) error {
		if w.User == "release" && w.Resource == "machinedeployments" {
			c.set(func() { n++ })
		}
		return nil
	})
	return func() (all int) {
		c.set(func() { all = n })
		return all
	}
}

// slow is the clock of a machine on which a decision takes long.
type slow struct{ clock.RealClock }

func (s slow) Since(t time.Time) time.Duration {
	time.Sleep(100 * time.Millisecond)
	return s.RealClock.Since(t)
}

// decisions returns how many decisions there have been, and how many seconds they took.
func decisions(registry *prometheus.Registry) (count, sum float64) {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			return float64(h.GetSampleCount()), h.GetSampleSum()
		}
	}
	return 0, 0
}

var _ = Describe("The controller", func() {
	It("has a pod bound within milliseconds, by one write, and then rests", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			told, options := []string{}, usual
			options.Raised = func(_ context.Context, d *v1alpha1.MachineDeployment) {
				told = append(told, fmt.Sprintf("%s=%d", d.Name, d.Spec.Replicas))
			}
			c.Start("release", controller(options))
			c.settle()
			Expect(c.writes(0)).To(BeEmpty())
			c.create(fresh(1, "p", 1000)...)
			time.Sleep(50 * time.Millisecond)
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=2"))
			c.settle()
			Expect(c.writes(0)).To(Equal([]string{"patch machinedeployments a"}))
			Expect(told).To(Equal([]string{"a=2"}))
			Expect(c.events()).To(Equal([]string{"ReserveNeeded: Raised replicas from 1 to 2 for pod default/p-0, to release machine a-002"}))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.Writes()[before:]).To(BeEmpty())
		})
	})

	It("releases what a burst needs, and no more", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 12, "1:20")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(41, "p", 1000)...)
			time.Sleep(500 * time.Millisecond)
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=12"))
			c.settle()
			Expect(c.replicas()).To(Equal("a=12"))
			Expect(len(c.writes(0))).To(BeNumerically("<", 11), "some pods are helped together")
		})
	})

	It("does not take another machine's Node for that of a machine in reserve which is gone, though it has its name", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			c.grow("a", 1, 1, "1:10")
			c.settle()
			_, err := c.core.CoreV1().Nodes().Create(ctx, Held(fixture.Node("reused", func(n *corev1.Node) { n.Spec.ProviderID = "sim:///successor" })), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(c.core.CoreV1().Nodes().Delete(ctx, "a-002", metav1.DeleteOptions{})).To(Succeed())
			_, err = c.ours.MachineV1alpha1().Machines(ns).Patch(ctx, "a-002", types.MergePatchType, []byte(`{"metadata":{"labels":{"node":"reused"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.create(fresh(5, "p", 1000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(5))
			Expect(c.replicas()).To(Equal("a=1"))

			_, err = c.core.CoreV1().Nodes().Patch(ctx, "reused", types.MergePatchType, []byte(`{"spec":{"providerID":"sim:///a-002"}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Minute)
			Expect(c.replicas()).To(Equal("a=2"), "the id decides")
		})
	})

	It("helps pods that have waited since before it began", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.create(fresh(5, "p", 1000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(5))
			c.Start("release", controller(usual))
			time.Sleep(time.Second)
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("helps as soon as a machine in reserve is ready", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(2, "p", 4000)...)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.waiting()).To(Equal(1))
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("leaves half of the time to others where decisions take long, however many pods change meanwhile", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 0, "1:10")
			registry, options := prometheus.NewPedanticRegistry(), usual
			options.Clock, options.Registerer = slow{clock.RealClock{}}, registry
			c.Start("release", controller(options))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			begun, count, sum := time.Now(), 0.0, 0.0
			count, sum = decisions(registry)
			for i := range 100 {
				c.create(fresh(1, fmt.Sprintf("q%d", i), 1000)...)
				time.Sleep(70 * time.Millisecond)
			}
			number, took := decisions(registry)
			Expect(number - count).To(BeNumerically(">", 10))
			Expect(took-sum).To(BeNumerically("<=", time.Since(begun).Seconds()/2+0.2), "of %v", time.Since(begun))
		})
	})

	It("goes up to max, and leaves the rest to others", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:3")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(5, "p", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.waiting()).To(Equal(3))
			c.patch("a", `{"metadata":{"annotations":{%q:"1:4"}}}`, v1alpha1.BoundsAnnotation)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
		})
	})

	It("keeps its hands off a MachineDeployment without bounds, or with such as nobody can read", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "")
			c.grow("b", 1, 2, "many")
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.writes(0)).To(BeEmpty())
		})
	})

	It("takes reserve machines that replicas include, once though an answer is lost, and replicas stay", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:9")
			c.patch("a", `{"spec":{"replicas":3,"excessReplicas":0},"metadata":{"annotations":{%q:"2,max=9,counted=2,replicas=3"}}}`, v1alpha1.AppliedExcessAnnotation)
			c.Start("release", controller(usual))
			c.settle()
			lost := false
			c.AfterWrite(func(w sim.Write) error {
				if w.User != "release" || w.Resource != "machinedeployments" || lost {
					return nil
				}
				lost = true
				return errors.New("the answer is lost")
			})
			for _, left := range []string{"1,max=9,counted=1,replicas=3", "0"} {
				c.create(fresh(1, "p"+left[:1], 4000)...)
				time.Sleep(time.Second)
				Expect(c.waiting()).To(BeZero())
				Expect(c.replicas()).To(Equal("a=3"))
				Expect(c.deployments()[0].Annotations[v1alpha1.AppliedExcessAnnotation]).To(Equal(left))
			}
			c.create(fresh(1, "q", 4000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(1))
			Expect(c.writes(0)).To(HaveLen(2))
		})
	})

	It("writes applied replicas with replicas where growth is being split", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.AppliedReplicasAnnotation] = "1" })
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.deployments()[0].Annotations).To(HaveKeyWithValue(v1alpha1.AppliedReplicasAnnotation, "2"))
		})
	})

	It("raises replicas where the applied replicas are out of date", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.AppliedReplicasAnnotation] = "7" })
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.deployments()[0].Annotations).To(HaveKeyWithValue(v1alpha1.AppliedReplicasAnnotation, "2"))
		})
	})

	It("decides anew where somebody else was faster", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes"} {
				c.Lag(resource, sim.Constantly(2*time.Second), "release")
			}
			c.patch("a", `{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"), "what was decided on one replica was not written over three")

			c.create(fresh(3, "q", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
			Expect(c.waiting()).To(Equal(1))
		})
	})

	It("decides again if another client took the reserve machines that replicas include", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:9")
			c.patch("a", `{"spec":{"replicas":3,"excessReplicas":0},"metadata":{"annotations":{%q:"2,max=9,counted=2,replicas=3"}}}`, v1alpha1.AppliedExcessAnnotation)
			c.Start("release", controller(usual))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes"} {
				c.Lag(resource, sim.Constantly(2*time.Second), "release")
			}
			c.patch("a", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.AppliedExcessAnnotation)
			time.Sleep(500 * time.Millisecond)
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.deployments()[0].Annotations).NotTo(HaveKey(v1alpha1.AppliedExcessAnnotation), "what was decided on two was not written over none")
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("raises once, though its answer is lost and no cache shows it", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes", "pods"} {
				c.Lag(resource, sim.Constantly(time.Second), "release")
			}
			lost, tried := 0, c.tries()
			c.AfterWrite(func(w sim.Write) error {
				if w.User == "release" && w.Resource == "machinedeployments" && lost < 1 {
					lost++
					return apierrors.NewTimeoutError("lost", 1)
				}
				return nil
			})
			c.create(fresh(2, "p", 4000)...)
			c.settle()
			Expect(lost).To(Equal(1))
			Expect(tried()).To(BeNumerically("<=", 2), "it knows what it wrote, and tries nothing twice")
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("goes by what it was answered until the caches show it", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes"} {
				c.Lag(resource, sim.Constantly(time.Second), "release")
			}
			tried := c.tries()
			for i := range 3 {
				c.create(fresh(1, fmt.Sprintf("p%d", i), 4000)...)
				time.Sleep(100 * time.Millisecond)
			}
			Expect(c.waiting()).To(BeZero())
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
			Expect(tried()).To(Equal(3))
		})
	})

	It("does not care for a pool that vanishes", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.Hold("machinedeployments", "release")
			Expect(c.ours.MachineV1alpha1().MachineDeployments(ns).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			c.Release("machinedeployments", "release")
			c.settle()
			Expect(c.waiting()).To(Equal(1))
		})
	})

	It("goes on after the API server refused a raise", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			var accepting atomic.Bool
			c.OnWrite(func(w sim.Write) error {
				if !accepting.Load() && w.User == "release" && w.Resource == "machinedeployments" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: w.Resource}, w.Name, errors.New("not allowed"))
				}
				return nil
			})
			c.create(fresh(1, "p", 1000)...)
			time.Sleep(time.Minute)
			Expect(c.replicas()).To(Equal("a=1"))
			accepting.Store(true)
			c.settle()
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("does not have pods wait because others write the MachineDeployment all the time", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			var refused atomic.Int32
			c.OnWrite(func(w sim.Write) error {
				if w.User == "release" && w.Resource == "machinedeployments" && refused.Load() < 3 {
					refused.Add(1)
					return apierrors.NewConflict(schema.GroupResource{Resource: w.Resource}, w.Name, errors.New("its status was written"))
				}
				return nil
			})
			c.create(fresh(1, "p", 1000)...)
			time.Sleep(50 * time.Millisecond)
			Expect(refused.Load()).To(BeEquivalentTo(3))
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("does not wait for the scheduler to look at pods that are like one that waits", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(1, "picky", 3000)...)
			time.Sleep(50 * time.Millisecond)
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.scheduler.Stop()).To(Succeed())
			c.create(fresh(1, "other", 3000)...)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=2"), "nobody has found that this one has no place")
			c.create(fresh(2, "picky", 3000, func(p *corev1.Pod) { p.Name += "-too" })...)
			time.Sleep(20 * time.Millisecond)
			Expect(c.replicas()).To(Equal("a=4"))
		})
	})

	It("gives up on a pod that the scheduler refuses for reasons of its own, and on no other", func() { // law 5
		play(func(c *cluster) {
			c.grow("a", 1, 6, "1:20")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"), "one was released in vain")
			for range 3 {
				c.create(fresh(1, "p", 4000, func(p *corev1.Pod) { p.GenerateName, p.Name = "p-", "" })...)
				c.settle()
			}
			Expect(c.waiting()).To(Equal(1))
			Expect(c.replicas()).To(Equal("a=4"), "that one, and two more for the three others")
		})
	})

	DescribeTable("does not count on room that goes, or that is promised",
		func(spoil func(c *cluster)) {
			play(func(c *cluster) {
				c.grow("a", 2, 2, "1:10")
				Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), "filler-a-002", metav1.DeleteOptions{})).To(Succeed())
				c.Start("release", controller(usual))
				c.create(fresh(1, "picky", 1000)...)
				c.settle()
				Expect(c.writes(0)).To(BeEmpty(), "a-002 has room")
				Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), "picky-0", metav1.DeleteOptions{})).To(Succeed())
				spoil(c)
				c.create(fresh(1, "picky", 2000)...)
				c.settle()
				Expect(c.writes(0)).To(HaveLen(1))
			})
		},
		Entry("named for deletion", func(c *cluster) {
			c.patch("a", `{"spec":{"replicas":1},"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":"x~2026-01-01T00:00:00Z,a-002~2026-01-01T00:00:00Z"}}}`)
		}),
		Entry("deleted", func(c *cluster) {
			c.patch("a", `{"spec":{"replicas":1}}`)
			machines := c.ours.MachineV1alpha1().Machines(ns)
			_, err := machines.Patch(context.Background(), "a-002", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.org/stay"]}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(machines.Delete(context.Background(), "a-002", metav1.DeleteOptions{})).To(Succeed())
		}),
		Entry("promised to a pod that preempts", func(c *cluster) {
			c.create(fresh(1, "picky-first", 4000, func(p *corev1.Pod) { p.Status.NominatedNodeName = "a-002" })...)
		}),
	)

	It("reads what it needs to decide: claims, classes and DaemonSets", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.grow("b", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.disk("data", "b")
			c.daemonSet(1000)
			c.create(fresh(1, "picky", 3500, claiming("data"))...)
			c.create(fresh(1, "q", 3000, claiming("data"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1 b=2"), "what is too large beside the DaemonSet is left alone")
			Expect(c.waiting()).To(Equal(1))
		})
	})

	It("says what it did, in words that do not grow with the number of pods", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.create(fresh(12, "p", 1000)...)
			c.settle()
			c.Start("release", controller(usual))
			c.settle()
			Expect(strings.Join(c.events(), "")).To(Equal("ReserveNeeded: Raised replicas from 1 to 4 for " +
				"12 pods (default/p-0, default/p-1, default/p-10, ...), to release machines a-002, a-003, a-004"))
		})
	})
})
