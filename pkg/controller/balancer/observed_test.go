// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// quietly runs body on a cluster in which no pods are created.
func quietly(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := still(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
		defer c.End()
		body(c)
	})
}

// pod makes one of a Deployment, in a phase.
func (c *cluster) pod(deployment string, phase corev1.PodPhase, changes ...func(*corev1.Pod)) {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: deployment + "-", Namespace: ns, Labels: map[string]string{"app": "shop", "run": deployment}}}
	pod.Spec.Containers = []corev1.Container{{Name: "work", Image: "registry.example/work:1"}}
	for _, change := range changes {
		change(pod)
	}
	pod, err := c.user.CoreV1().Pods(ns).Create(context.Background(), pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	if pod.Status.Phase = phase; phase == corev1.PodRunning {
		now := metav1.Now()
		pod.Status.StartTime = &now
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	}
	_, err = c.user.CoreV1().Pods(ns).UpdateStatus(context.Background(), pod, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("What is seen of a target", func() {
	const young, old = time.Minute, time.Hour
	type made struct {
		phase corev1.PodPhase
		age   time.Duration
	}

	DescribeTable("is its pods that live, those that are ready, and those that have not started in five minutes",
		func(observed, ready, late int, pods ...made) {
			quietly(func(c *cluster) {
				c.deploy("a", int32(observed))
				c.deploy("b", 0)
				for _, age := range []time.Duration{old, young} {
					for _, pod := range pods {
						if pod.age == age {
							c.pod("a", pod.phase)
						}
					}
					if age == old {
						time.Sleep(old - young)
					}
				}
				time.Sleep(young)
				b := object("shop", int32(observed), builders.InOrder("a", "b"), "a", "b")
				b.Spec.Policy.Fallback = builders.Fallback(func(f *v1alpha1.Fallback) { f.StartupTimeoutSeconds = ptr.To[int32](300) })
				c.create(b)
				c.Start("balancer", controller(Options{}))
				time.Sleep(time.Second)
				s := c.balancer("shop").Status.Targets[0]
				Expect([]int{int(s.Observed), int(s.Ready), int(s.NotStarted)}).To(Equal([]int{observed, ready, late}))
			})
		},
		Entry("two that run, one that waits for a minute", 3, 2, 0, made{"Running", old}, made{"Running", old}, made{"Pending", young}),
		Entry("those that have ended", 0, 0, 0, made{"Succeeded", old}, made{"Failed", old}),
		Entry("one whose phase is unknown", 0, 0, 0, made{"Unknown", old}),
		Entry("one that has waited for an hour", 1, 0, 1, made{"Pending", old}),
		Entry("the same among others", 3, 2, 1, made{"Pending", old}, made{"Running", old}, made{"Running", old}, made{"Failed", old}),
	)

	It("is not what is about to go", func() {
		quietly(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			for _, name := range []string{"a", "b"} {
				c.pod(name, corev1.PodRunning, func(p *corev1.Pod) { p.Finalizers = []string{"example.org/stay"} })
			}
			Expect(c.user.CoreV1().Pods(ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "run=a"})).To(Succeed())
			c.balance("shop", 2, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			time.Sleep(time.Second)
			s := c.balancer("shop").Status
			Expect([]int32{s.Targets[0].Observed, s.Targets[1].Observed, s.ObservedReplicas}).To(Equal([]int32{0, 1, 1}))
		})
	})

	It("is C3: where all pods lack a label that the Balancer asks for, its phase, and nothing is written", func() {
		quietly(func(c *cluster) {
			for _, name := range []string{"a", "b"} {
				c.deploy(name, 1)
				c.pod(name, corev1.PodRunning)
			}
			b := object("shop", 10, builders.Shares(30, 70), "a", "b")
			b.Spec.Selector.MatchLabels["tier"] = "none-has-it"
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "Balancing")).To(Equal("False PodLabelsChecking"))
			Expect(c.sizes("a", "b")).To(Equal("1/1"))
			Expect(c.writes(0)).To(HaveEach("status shop"))
		})
	})

	It("is C9: where no target exists, its phase, and nothing is written", func() {
		quietly(func(c *cluster) {
			c.balance("shop", 0, builders.Shares(30, 70), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "Balancing")).To(Equal("False ScaleSubresourcePolling"))
			Expect(c.writes(0)).To(HaveEach("status shop"))
		})
	})

	It("is C5: nothing where nothing is wanted, and no scale is written", func() {
		quietly(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.balance("shop", 0, builders.Shares(30, 70), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "Balancing")).To(Equal("True Completed"))
			Expect(c.writes(0)).To(HaveEach("status shop"))
		})
	})

	It("is never all pods of the namespace, where a workload has no selector", func() {
		quietly(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} })
			for range 5 {
				c.pod("a", corev1.PodRunning)
			}
			c.balance("shop", 2, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			s := c.balancer("shop").Status
			Expect([]int32{s.Targets[0].Observed, s.Targets[1].Observed}).To(Equal([]int32{5, 0}))
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("True Resolved"), "its own status is enough")
		})
	})

	It("is its kind also while the API server does not say which kinds it serves", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.balance("shop", 4, builders.Even(), "a", "b")
			var down atomic.Bool
			c.Start("balancer", func(ctx context.Context, config *rest.Config) error {
				config.Wrap(refusing(func(path string) bool { return down.Load() && path == "/apis/apps/v1" }, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
				return controller(Options{})(ctx, config)
			})
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
			down.Store(true)
			time.Sleep(11 * time.Minute)
			c.scale("shop", 6)
			time.Sleep(time.Second)
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.condition("shop", "Ready")).To(Equal("True UnderControl"))
		})
	})

	It("is shown in metrics: replicas of every Balancer, blocked targets, writes by how they ended", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.set(func() { c.out["a"] = true })
			c.balance("shop", 10, builders.Shares(50, 50), "a", "b")
			registry := prometheus.NewRegistry()
			c.Start("balancer", controller(Options{Registerer: registry}))
			c.settle()
			Expect(metrics(registry)).To(And(
				HaveKeyWithValue("evenkeel_balancer_replicas wanted", 10.0),
				HaveKeyWithValue("evenkeel_balancer_replicas desired", 15.0),
				HaveKeyWithValue("evenkeel_balancer_replicas observed", 15.0),
				HaveKeyWithValue("evenkeel_balancer_replicas ready", 10.0),
				HaveKeyWithValue("evenkeel_balancer_replicas overflow", 0.0),
				HaveKeyWithValue("evenkeel_balancer_replicas deficit", 0.0),
				HaveKeyWithValue("evenkeel_balancer_blocked_targets", 1.0),
				HaveKeyWithValue("evenkeel_balancer_writes_total done raise", 3.0),
			))
		})
	})

	It("is told once: no event repeats what has been said, however long it lasts", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			b := object("shop", 10, builders.Shares(50, 50), "a", "b", "c")
			b.Spec.Policy.Fallback = nil
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			told := c.events()
			Expect(told).To(ConsistOf("Scaled", "Scaled", "UnableToBalance"))
			c.deploy("d", 3) // its pods belong to no target
			time.Sleep(24 * time.Hour)
			Expect(c.events()).To(Equal(told))
		})
	})
})

// metrics are the values of a registry, by name and what they are about.
func metrics(registry *prometheus.Registry) map[string]float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := family.GetName()
			for _, label := range metric.GetLabel() {
				if label.GetName() == "what" || label.GetName() == "end" {
					key += " " + label.GetValue()
				}
			}
			values[key] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values
}
