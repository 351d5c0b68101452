// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// neighbours are the Balancers beside a bad one.
const neighbours = 99

// beside runs a controller over 99 good Balancers with two targets each, and whatever spoil adds, and looks at what
// becomes of it. No pods are created here. Whatever it is, the good ones get their scales with two writes each.
func beside(spoil, check func(c *cluster), wraps ...func(http.RoundTripper) http.RoundTripper) {
	storm.Bubble(suite, func() {
		c := still(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
		defer c.End()
		c.deploy("bad-a", 1)
		c.deploy("bad-b", 1)
		spoil(c)
		for i := range neighbours {
			a, b := fmt.Sprintf("good-%d-a", i), fmt.Sprintf("good-%d-b", i)
			c.deploy(a, 0)
			c.deploy(b, 0)
			good := object(fmt.Sprintf("good-%d", i), 10, builders.Even(), a, b)
			good.Spec.Policy.Fallback = nil
			c.create(good)
		}
		c.Start("balancer", func(ctx context.Context, config *rest.Config) error {
			for _, wrap := range wraps {
				config.Wrap(wrap)
			}
			return controller(Options{})(ctx, config)
		})
		c.settle()
		c.unharmed()
		check(c)
		before := len(c.Writes())
		time.Sleep(24 * time.Hour)
		Expect(c.writes(before)).To(BeEmpty(), "at rest, whatever is wrong")
	})
}

func (c *cluster) unharmed() {
	GinkgoHelper()
	scaled := map[string]int{}
	for _, w := range c.writes(0) {
		if kind, name, _ := strings.Cut(w, " "); kind == "scale" {
			scaled[name]++
		}
	}
	for i := range neighbours {
		name := fmt.Sprintf("good-%d", i)
		Expect(c.sizes(name+"-a", name+"-b")).To(Equal("5/5"))
		Expect([]int{scaled[name+"-a"], scaled[name+"-b"]}).To(Equal([]int{1, 1}), name)
		Expect(c.condition(name, "Ready")).To(Equal("True UnderControl"))
		Expect(c.condition(name, "Balanced")).To(Equal("True AtGoal"))
	}
}

// bad is a Balancer of bad-a and bad-b with something wrong, as it may have been stored before it was refused.
func bad(policy v1alpha1.BalancerPolicy, changes ...func(*v1alpha1.Balancer)) func(*cluster) {
	return func(c *cluster) {
		b := object("bad", 10, policy, "bad-a", "bad-b")
		b.Spec.Policy.Fallback = nil
		for _, change := range changes {
			change(b)
		}
		c.create(b)
	}
}

var _ = Describe("Beside 99 others", func() {
	ref := func(apiVersion, kind, name string) func(*v1alpha1.Balancer) {
		return func(b *v1alpha1.Balancer) {
			b.Spec.Targets[1].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: apiVersion, Kind: kind, Name: name}
		}
	}
	weights := func(a, b int32) v1alpha1.BalancerPolicy {
		return v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Proportional, Proportions: &v1alpha1.ProportionalPolicy{TargetProportions: map[string]int32{"bad-a": a, "bad-b": b}}}
	}

	DescribeTable("a bad Balancer reports what is wrong, and no other is affected",
		func(spoil func(*cluster), sizes, condition, says string) {
			beside(spoil, func(c *cluster) {
				Expect(c.sizes("bad-a", "bad-b")).To(Equal(sizes))
				Expect(c.condition("bad", condition)).To(Equal(says))
			})
		},
		Entry("an unknown name in the order counts for nothing", bad(builders.InOrder("x", "bad-b", "y", "bad-a")), "0/10", "Ready", "True UnderControl"),
		Entry("a name twice", bad(builders.Even(), func(b *v1alpha1.Balancer) { b.Spec.Targets[1].Name = "bad-a" }), "1/1", "Ready", "False Invalid"),
		Entry("a workload twice", bad(builders.Even(), ref("apps/v1", "Deployment", "bad-a")), "1/1", "Ready", "False Invalid"),
		Entry("a target that is missing", bad(builders.Even(), ref("apps/v1", "Deployment", "nowhere")), "5/1", "TargetsResolved", "False NotFound"),
		Entry("a target of a kind that the flag forbids", bad(builders.Even(), ref("apps/v1", "DaemonSet", "x")), "5/1", "TargetsResolved", "False KindNotAllowed"),
		Entry("a kind that the API server does not serve", bad(builders.Even(), ref("machine.sapcloud.io/v1alpha1", "MachineDeployment", "x")), "5/1", "TargetsResolved", "False NoSuchKind"),
		Entry("machines where there are none", bad(builders.Even(), func(b *v1alpha1.Balancer) { b.Spec.Targets[1].Observer = v1alpha1.MachinesObserver }), "9/1", "TargetsResolved", "False NotObservable"),
		Entry("a minimum above the maximum", bad(builders.Even(), func(b *v1alpha1.Balancer) {
			b.Spec.Targets[0].MinReplicas, b.Spec.Targets[0].MaxReplicas = ptr.To(intstr.FromInt32(5)), ptr.To(intstr.FromInt32(3))
		}), "1/1", "Ready", "False Invalid"),
		Entry("a share below 0", bad(weights(-5, 1)), "0/10", "TargetsResolved", "False NegativeShares"),
		Entry("an empty selector", bad(builders.Even(), func(b *v1alpha1.Balancer) { b.Spec.Selector = metav1.LabelSelector{} }), "1/1", "Ready", "False Invalid"),
		Entry("no targets", bad(builders.Even(), func(b *v1alpha1.Balancer) { b.Spec.Targets = nil }), "1/1", "WithinLimits", "False NoRoom"),
		Entry("nothing at all", bad(v1alpha1.BalancerPolicy{}, func(b *v1alpha1.Balancer) { b.Spec = v1alpha1.BalancerSpec{} }), "1/1", "Ready", "False Invalid"),
		Entry("all the replicas there can be", bad(builders.Even(), func(b *v1alpha1.Balancer) { b.Spec.Replicas = ptr.To[int32](math.MaxInt32) }), "1073741824/1073741823", "Ready", "True UnderControl"),
		Entry("itself", bad(builders.Even(), ref("balancer.x-k8s.io/v1alpha1", "Balancer", "bad")), "5/1", "TargetsResolved", "False KindNotAllowed"),
	)

	It("the second Balancer of a Deployment names the first", func() {
		beside(func(c *cluster) {
			bad(builders.Even())(c)
			time.Sleep(2 * time.Second)
			c.deploy("c", 1)
			c.balance("second", 4, builders.Even(), "bad-a", "c")
		}, func(c *cluster) {
			Expect(c.sizes("bad-a", "bad-b", "c")).To(Equal("5/5/1"))
			Expect(c.condition("second", "Ready")).To(Equal("False Conflict"))
			Expect(c.message("second", "Ready")).To(ContainSubstring("older Balancer bad"))
		})
	})

	It("64 targets are served, and a 65th that was stored does no harm", func() {
		names := func(n int) []string {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf("many-%d", i))
			}
			return all
		}
		for _, n := range []int{64, 65} {
			beside(func(c *cluster) {
				for _, name := range names(n) {
					c.deploy(name, 0)
				}
				b := object("bad", int32(3*n), builders.Even(), names(n)...)
				b.Spec.Policy.Fallback = nil
				c.create(b)
			}, func(c *cluster) {
				Expect(c.sizes(names(n)...)).To(Equal(strings.TrimSuffix(strings.Repeat("3/", n), "/")))
				Expect(c.balancer("bad").Status.Targets).To(HaveLen(n))
			})
		}
	})

	It("a target that is deleted later is reported, and recovers when it exists again", func() {
		beside(bad(builders.Even()), func(c *cluster) {
			Expect(c.sizes("bad-a", "bad-b")).To(Equal("5/5"))
			Expect(c.user.AppsV1().Deployments(ns).Delete(context.Background(), "bad-b", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c.condition("bad", "TargetsResolved")).To(Equal("False NotFound"))
			Expect(c.sizes("bad-a")).To(Equal("5"), "its share is kept for it")
			c.deploy("bad-b", 0)
			c.settle()
			Expect(c.sizes("bad-a", "bad-b")).To(Equal("5/5"))
			Expect(c.condition("bad", "Ready")).To(Equal("True UnderControl"))
			c.unharmed()
		})
	})

	It("pods that several targets select are counted for each, and reported", func() {
		play(func(c *cluster) {
			c.deploy("a", 2)
			c.deploy("b", 2, func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels = map[string]string{"app": "shop"} })
			c.balance("shop", 4, builders.Even(), "a", "b")
			c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Policy.Fallback, b.Spec.Paused = nil, true })
			time.Sleep(10 * time.Second)
			c.Start("balancer", controller(Options{}))
			time.Sleep(time.Minute)
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("False SharedPods"))
			Expect(c.message("shop", "TargetsResolved")).To(ContainSubstring("different selectors"))
		})
	})

	It("a kind that may not be watched is reported, and no other target is affected", func() {
		beside(bad(builders.Even(), ref("apps/v1", "StatefulSet", "x")), func(c *cluster) {
			Expect(c.condition("bad", "TargetsResolved")).To(Equal("False OutOfReach"))
			Expect(c.message("bad", "TargetsResolved")).To(ContainSubstring("allow the controller to list and watch"))
			Expect(c.sizes("bad-a")).To(Equal("5"))
		}, forbidden("/statefulsets"))
	})
})
