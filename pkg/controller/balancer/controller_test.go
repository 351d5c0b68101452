// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/policy"
)

var _ = Describe("The controller", func() {
	It("writes each scale once, within milliseconds, and then rests", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.Start("balancer", controller(Options{}))
			c.settle()
			begun := time.Now()
			c.balance("shop", 10, builders.Shares(30, 70), "a", "b")
			time.Sleep(100 * time.Millisecond)
			Expect(c.sizes("a", "b")).To(Equal("3/7"))
			for _, w := range c.Writes() {
				if w.User == "balancer" && w.Subresource == "scale" {
					Expect(w.Time.Sub(begun)).To(BeNumerically("<", 50*time.Millisecond))
				}
			}
			c.settle()
			Expect(c.writes(0)[:2]).To(Equal([]string{"scale a", "scale b"}))
			Expect(c.writes(0)[2:]).To(HaveEach("status shop"))
			Expect(len(c.writes(0))).To(BeNumerically("<", 12))
			s := c.balancer("shop").Status
			Expect([]int32{s.Replicas, s.ObservedReplicas, s.ReadyReplicas, s.DesiredReplicas}).To(Equal([]int32{10, 10, 10, 10}))
			Expect(s.Selector).To(Equal("app=shop"))
			Expect(s.ObservedGeneration).To(BeEquivalentTo(1))
			Expect(c.condition("shop", "Ready")).To(Equal("True UnderControl"))
			Expect(c.condition("shop", "Balancing")).To(Equal("True Completed"))
			Expect(c.events()).To(Equal([]string{"Scaled", "Scaled"}))

			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
			Expect(*c.balancer("shop").Spec.Replicas).To(BeEquivalentTo(10))
		})
	})

	It("raises before it lowers, step by step, and never takes a ready replica too many", func() {
		play(func(c *cluster) {
			c.deploy("a", 8)
			c.deploy("b", 0)
			c.balance("shop", 8, builders.InOrder("a", "b"), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("8/0"))
			before := len(c.Writes())
			c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Policy.Priorities.TargetOrder = []string{"b", "a"} })
			for c.sizes("a", "b") != "0/8" {
				time.Sleep(500 * time.Millisecond)
				Expect(c.running()).To(BeNumerically(">=", 8))
				Expect(c.running()).To(BeNumerically("<=", 10))
			}
			c.settle()
			Expect(c.writes(before)[0]).To(Equal("scale b"))
		})
	})

	It("lowers nothing in a sync in which a raise fails", func() {
		play(func(c *cluster) {
			c.deploy("a", 8)
			c.deploy("b", 0)
			b := object("shop", 8, builders.InOrder("b", "a"), "a", "b")
			b.Spec.Transition = &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromInt32(2)), MaxUnavailable: ptr.To(intstr.FromInt32(2))}
			var failing atomic.Bool
			failing.Store(true)
			c.OnWrite(func(w sim.Write) error {
				if failing.Load() && w.Name == "b" && w.Subresource == "scale" {
					return apierrors.NewInternalError(errors.New("out of order"))
				}
				return nil
			})
			time.Sleep(30 * time.Second)
			c.create(b)
			c.Start("balancer", controller(Options{}))
			time.Sleep(5 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("8/0"))
			failing.Store(false)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("0/8"))
			scales := slices.DeleteFunc(c.writes(0), func(w string) bool { return w == "status shop" })
			Expect(scales[:2]).To(Equal([]string{"scale b", "scale a"}), "although a is the first target")
		})
	})

	It("falls back when pods stay pending, within the timeout and a second, and returns without a dip", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.set(func() { c.out["a"] = true })
			c.Start("balancer", controller(Options{}))
			c.balance("shop", 10, builders.Shares(50, 50), "a", "b")
			time.Sleep(59 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			time.Sleep(3 * time.Second) // a second until the pods were made, and one for the clock's
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
			time.Sleep(time.Minute)
			Expect(c.condition("shop", "FallbackActive")).To(Equal("True TargetsBlocked"))
			s := c.balancer("shop").Status
			Expect([]int32{s.Replicas, s.ObservedReplicas, s.DesiredReplicas}).To(Equal([]int32{10, 15, 15}), "an autoscaler must not see the stand-ins")
			c.settle()
			c.set(func() { c.out["a"] = false })
			for c.sizes("a", "b") != "5/5" {
				time.Sleep(500 * time.Millisecond)
				Expect(c.running()).To(BeNumerically(">=", 10))
			}
			c.settle()
			Expect(c.condition("shop", "FallbackActive")).To(Equal("False NotNeeded"))
			Expect(c.events()).To(ContainElements("FallbackStarted", "FallbackEnded"))
		})
	})

	It("does not say that all targets start their replicas when the Balancer becomes invalid", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.set(func() { c.out["a"] = true })
			c.balance("shop", 10, builders.Shares(50, 50), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "FallbackActive")).To(Equal("True TargetsBlocked"))
			c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Selector = metav1.LabelSelector{} })
			c.settle()
			Expect(c.condition("shop", "FallbackActive")).To(Equal("Unknown Invalid"))
			Expect(c.events()).To(And(ContainElement("UnableToBalance"), Not(ContainElement("FallbackEnded"))))
		})
	})

	It("falls back when pods are never made, and when pods are replaced again and again", func() {
		play(func(c *cluster) {
			c.deploy("a", 5)
			c.deploy("b", 5)
			c.balance("shop", 10, builders.Shares(50, 50), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			c.set(func() { c.quota["a"] = 5 })
			c.scale("shop", 20)
			time.Sleep(65 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("10/15"))
			s := c.balancer("shop").Status
			Expect(s.Replicas).To(BeEquivalentTo(20))
		})
	})

	It("takes kinds whose fields it does not know by their scale", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.widget("w", 1)
			b := object("shop", 10, builders.Even(), "a", "w")
			b.Spec.Policy.Fallback = nil // no controller acts on widgets here
			b.Spec.Targets[1].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.org/v1", Kind: "Widget", Name: "w"}
			c.create(b)
			c.Start("balancer", controller(Options{Kinds: append([]schema.GroupKind{{Group: "example.org", Kind: "Widget"}}, DefaultKinds...)}))
			c.settle()
			Expect(c.sizes("a")).To(Equal("5"))
			Expect(c.size("w")).To(BeEquivalentTo(5))
		})
	})

	It("publishes what it would do while paused, and does it afterwards", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			b := object("shop", 10, builders.Even(), "a", "b")
			b.Spec.Paused = true
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("1/1"))
			Expect(c.balancer("shop").Status.Targets[0].Desired).To(BeEquivalentTo(5))
			Expect(c.condition("shop", "Balanced")).To(Equal("False Paused"))
			c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Paused = false })
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
		})
	})

	It("decides on no cache that is older than its own writes", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.Lag("deployments", sim.Constantly(20*time.Second), "balancer")
			c.Lag("balancers", sim.Constantly(7*time.Second), "balancer")
			var tried atomic.Int32
			c.OnWrite(func(w sim.Write) error {
				if w.User == "balancer" && w.Resource != "events" {
					tried.Add(1)
				}
				return nil
			})
			c.Start("balancer", controller(Options{}))
			time.Sleep(time.Minute)
			c.balance("shop", 10, builders.Even(), "a", "b")
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			scales := 0
			for _, w := range c.writes(0) {
				if w != "status shop" {
					scales++
				}
			}
			Expect(scales).To(Equal(2))
			Expect(tried.Load()).To(BeEquivalentTo(len(c.writes(0))), "a write that conflicts was decided on something old")
		})
	})

	It("brings 1 replica where none was written", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			b := object("shop", 0, builders.Even(), "a", "b")
			b.Spec.Replicas = nil
			c.create(b)
			c.Start("balancer", controller(Options{Workers: 1}))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("1/0"))
		})
	})
})

// countingClock counts how often the time is read, which each sync does.
type countingClock struct {
	clock.RealClock
	reads *atomic.Int64
}

func (c countingClock) Now() time.Time {
	c.reads.Add(1)
	return c.RealClock.Now()
}

var _ = Describe("A paused Balancer", func() {
	It("rests though a target that refused to be scaled is due again, and tries it once it continues", func() {
		play(func(c *cluster) {
			c.deploy("a", 4)
			c.deploy("b", 4)
			c.balance("shop", 8, builders.Even(), "a", "b")
			var reads atomic.Int64
			c.Start("balancer", controller(Options{Clock: countingClock{reads: &reads}}))
			c.settle()
			var denied atomic.Bool
			denied.Store(true)
			c.OnWrite(func(w sim.Write) error {
				if denied.Load() && w.Name == "b" && w.Subresource == "scale" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", nil)
				}
				return nil
			})
			pause := func(paused bool) { c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Paused = paused }) }
			c.scale("shop", 4)
			time.Sleep(time.Second)
			pause(true)
			time.Sleep(59 * time.Second)
			reads.Store(0)
			time.Sleep(10 * time.Second)
			Expect(reads.Load()).To(BeNumerically("<", 100))
			denied.Store(false)
			pause(false)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
		})
	})
})

var _ = It("asks targets for nothing that rests on a memory which cannot be written", func() {
	play(func(c *cluster) {
		c.set(func() { c.out["a"] = true })
		c.deploy("a", 6)
		c.deploy("b", 10)
		c.deploy("c", 3)
		c.balance("shop", 13, builders.Shares(5, 3, 2), "a", "b", "c")
		time.Sleep(2 * time.Minute)
		b, since := c.balancer("shop"), &metav1.Time{Time: time.Now().Add(-time.Minute)}
		b.Status.Targets = []v1alpha1.TargetStatus{
			{Name: "a", Replicas: 6, BlockedSince: since, Blocks: 1}, {Name: "b", Replicas: 10}, {Name: "c", Replicas: 3, BlockedSince: since, Blocks: 1},
		}
		_, err := c.ours.BalancerV1alpha1().Balancers(ns).UpdateStatus(context.Background(), b, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		var full atomic.Bool
		full.Store(true)
		c.OnWrite(func(w sim.Write) error {
			if w.Resource == "balancers" && full.Load() {
				return apierrors.NewInternalError(errors.New("no space left on device"))
			}
			return nil
		})
		c.Start("balancer", controller(Options{}))
		time.Sleep(10 * time.Minute)
		Expect(c.writes(0)).To(BeEmpty())
		Expect(c.events()).To(HaveEach("StatusNotUpdated"))

		full.Store(false)
		time.Sleep(10 * time.Minute)
		Expect(c.sizes("a", "b", "c")).To(Equal("6/8/5"))
	})
})

// withTimeout is another Balancer with a startupTimeout, as a user writes it.
const withTimeout = `{apiVersion: balancer.x-k8s.io/v1alpha1, kind: Balancer, metadata: {name: other, namespace: default}, spec: {
  selector: {matchLabels: {app: other}}, policy: {policyName: even, fallback: {startupTimeout: 3m}},
  targets: [{name: c, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: c}}, {name: d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}]}}`

var _ = Describe("A startupTimeout that the schema lets in", func() {
	DescribeTable("can be read, so that the other Balancers are scaled",
		func(timeout string, taken bool) {
			play(func(c *cluster) {
				checks, err := policy.Load("../../../kubernetes/crds")
				Expect(err).NotTo(HaveOccurred())
				checks.Enforce(c.Server)
				b := &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(withTimeout), &b.Object)).To(Succeed())
				Expect(unstructured.SetNestedField(b.Object, timeout, "spec", "policy", "fallback", "startupTimeout")).To(Succeed())
				_, err = dynamic.NewForConfigOrDie(c.ConfigFor("user")).Resource(balancerGVR).Namespace(ns).Create(context.Background(), b, metav1.CreateOptions{})
				Expect(apierrors.IsInvalid(err)).NotTo(Equal(taken), "%v", err)
				c.deploy("a", 0)
				c.deploy("b", 0)
				c.balance("shop", 4, builders.Even(), "a", "b")
				c.Start("balancer", controller(Options{}))
				c.settle()
				Expect(c.sizes("a", "b")).To(Equal("2/2"))
			})
		},
		Entry("the longest", "999999h999999h99999h", true),
		Entry("not one that is longer than a duration can be", "999999h999999h999999h", false),
	)
})
