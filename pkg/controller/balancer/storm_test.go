// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("Storms", func() {
	It("end as calm weather does, and then nothing is written", func() {
		storm.Seeds(suite, 8, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 1))
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, int32(random.IntN(6)))
			}
			c.balance("shop", 10, builders.Shares(5, 3, 2), "a", "b", "c")
			first, second := c.Twins("balancer", storm.Probing(probe, controller(Options{})))
			c.Storm(random, first, second)
			c.disturbAll(random, first)
			c.Calm()
			c.set(func() { c.out = map[string]bool{} })
			c.scale("shop", 20)
			// A target that was blocked often is trusted again after 16 minutes.
			Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
			Expect(c.sizes("a", "b", "c")).To(Equal("10/6/4"))
			Expect(c.condition("shop", "Ready")).To(Equal("True UnderControl"))
			Expect(c.condition("shop", "FallbackActive")).To(Equal("False NotNeeded"))
			before := len(c.Writes())
			time.Sleep(time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	It("never take a ready replica that is wanted, wherever the controller is killed", func() {
		scenario := storm.Scenario{
			Options: sim.Options{Seed: 2, Resources: served},
			Story: func(w *storm.World) {
				c := adopt(w)
				c.deploy("a", 6)
				c.deploy("b", 0)
				c.balance("shop", 6, builders.InOrder("a", "b"), "a", "b")
				time.Sleep(10 * time.Second)
				w.Start("balancer", controller(Options{}))
				c.settle()
				c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Policy.Priorities.TargetOrder = []string{"b", "a"} })
				for range 1200 {
					time.Sleep(100 * time.Millisecond)
					if n := c.running(); n < 6 {
						Fail(fmt.Sprintf("only %d pods run", n))
					}
				}
				c.settle()
			},
			End: func(w *storm.World) any { return (&cluster{World: w}).sizes("a", "b") },
		}
		Expect(storm.CrashPoints(suite, scenario, "balancer")).To(Succeed())
	})

	It("lose no memory of a blocked target, wherever the controller is killed", func() {
		scenario := storm.Scenario{
			Options: sim.Options{Seed: 3, Resources: served},
			Story: func(w *storm.World) {
				c := adopt(w)
				c.deploy("a", 0)
				c.deploy("b", 0)
				c.set(func() { c.out["a"] = true })
				c.balance("shop", 4, builders.Even(), "a", "b")
				w.Start("balancer", controller(Options{}))
				c.settle()
				Expect(c.condition("shop", "FallbackActive")).To(HavePrefix("True "))
				a := c.balancer("shop").Status.Targets[0]
				Expect(a.BlockedSince).NotTo(BeNil())
				Expect(a.Blocks).To(BeEquivalentTo(1), "it never recovered")
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				return c.sizes("a", "b") + " " + c.condition("shop", "FallbackActive")
			},
		}
		Expect(storm.CrashPoints(suite, scenario, "balancer")).To(Succeed())
	})
})

// probe is what the process of Balancers asks for.
func probe(config *rest.Config) reachability.Probe {
	return reachability.ListingOptional(workloads.NewForConfigOrDie(config).BalancerV1alpha1().Balancers("").List)
}

// disturbAll does many things that happen in clusters, and restores a backup from the midst of them.
func (c *cluster) disturbAll(random *rand.Rand, p *storm.Process) {
	c.Require("lease lost", "restore")
	var backup *sim.Snapshot
	for round := range 15 {
		time.Sleep(time.Duration(random.IntN(90)) * time.Second)
		switch round {
		case 5:
			backup = c.Snapshot()
		case 10:
			c.Restore(backup)
			c.set(func() {})
		default:
			c.disturb(random, p)
		}
	}
}

// disturb does one thing that happens in clusters.
func (c *cluster) disturb(random *rand.Rand, p *storm.Process) {
	switch random.IntN(5) {
	case 0:
		p.CrashFor(time.Duration(random.IntN(30)) * time.Second)
	case 1:
		c.scale("shop", int32(random.IntN(30)))
	case 2:
		c.set(func() { c.out["a"] = !c.out["a"] })
	case 3:
		c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Paused = !b.Spec.Paused })
		time.Sleep(time.Second)
		c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Paused = false })
	case 4:
		c.Compact()
	}
}

// probed is the API server, as a program probes it.
func probed(config *rest.Config) *reachability.Cluster {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return reachability.New("control", probe(config), reachability.Options{})
}

// aware is the controller beside a probe of its API server, as in its process.
func aware(ctx context.Context, config *rest.Config) error {
	return besideProbe(ctx, config, probed(config))
}

// elected is the same, for as long as its process has the lease. It starts again after that.
func elected(ctx context.Context, config *rest.Config) error {
	leases := rest.CopyConfig(config)
	leases.QPS, leases.Timeout = -1, 5*time.Second
	client := kubernetes.NewForConfigOrDie(leases)
	for life := 1; ctx.Err() == nil; life++ {
		cluster := probed(config)
		lease := daemon.Lease{Namespace: ns, Name: "balancer", Identity: fmt.Sprint("balancer-", life), Renewed: cluster.WatchedUntil}
		_ = daemon.Elect(ctx, client, lease, func(ctx context.Context) error { return besideProbe(ctx, config, cluster) }) // it was lost
		time.Sleep(5 * time.Second)
	}
	return nil
}

func besideProbe(ctx context.Context, config *rest.Config, cluster *reachability.Cluster) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- cluster.Run(ctx)
	}()
	err := controller(Options{Cluster: cluster})(ctx, config)
	cancel()
	<-ended
	return err
}

var _ storm.Program = aware

// silencedEarly has the API server fall silent while the pods of one of two targets do not start, before they are late.
func (c *cluster) silencedEarly(program storm.Program) {
	GinkgoHelper()
	c.deploy("a", 0)
	c.deploy("b", 0)
	c.set(func() { c.out["a"] = true })
	c.Start("balancer", program)
	time.Sleep(time.Minute)
	c.balance("shop", 10, builders.Shares(50, 50), "a", "b")
	time.Sleep(20 * time.Second)
	Expect(c.sizes("a", "b")).To(Equal("5/5"))
	c.Silence(true, "balancer")
}

var _ = Describe("While the API server is silent", func() {
	It("no target falls behind whose pods have started meanwhile", func() {
		play(func(c *cluster) {
			c.silencedEarly(aware)
			c.set(func() { c.out["a"] = false })
			time.Sleep(10 * time.Minute)
			before := len(c.Writes())
			c.Silence(false, "balancer")
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			Expect(c.writes(before)).NotTo(ContainElement(HavePrefix("scale")))
		})
	})

	DescribeTable("no time passes for pods that could not start meanwhile, and that start afterwards", func(program storm.Program) {
		play(func(c *cluster) {
			c.silencedEarly(program)
			c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Policy.Fallback.StartupTimeoutSeconds = ptr.To[int32](300) })
			time.Sleep(10 * time.Minute)
			before := len(c.Writes())
			c.Silence(false, "balancer")
			time.Sleep(4 * time.Minute)
			c.set(func() { c.out["a"] = false })
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			Expect(c.writes(before)).NotTo(ContainElement(HavePrefix("scale")))
		})
	},
		Entry("where the process goes on", aware),
		Entry("where the process loses its lease", elected),
	)

	It("a target that went out of order is noticed once it answers, without another event", func() {
		play(func(c *cluster) {
			c.silencedEarly(aware)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			c.Silence(false, "balancer")
			time.Sleep(3 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
		})
	})
})

var _ = Describe("What is created and deleted again", func() {
	// Half of the workloads may not be scaled, and a quarter of the Balancers name a version that there never was.
	It("leaves nothing behind: Balancers and their workloads", Label("soak"), func() {
		const each = 100
		rounds := storm.Soak(2_000, 2*each)
		storm.Bubble(suite, func() {
			c := still(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
			defer c.End()
			var held *Controller
			c.Start("balancer", func(ctx context.Context, config *rest.Config) error {
				config.Wrap(forbidden("odd/scale"))
				return watched(Options{}, func(it *Controller) { held = it })(ctx, config)
			})
			c.settle()
			for round := range rounds {
				for i := range each {
					name := fmt.Sprintf("it-%d-%d-%s", round, i, []string{"even", "odd"}[i%2])
					c.deploy(name, 1)
					b := object(name, 3, builders.Even(), name)
					b.Spec.Policy.Fallback = nil
					if i%4 == 0 {
						b.Spec.Targets[0].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: fmt.Sprintf("apps/v%d%d", round, i), Kind: "Deployment", Name: name}
					}
					c.create(b)
				}
				time.Sleep(50 * time.Second)
				ctx := context.Background()
				Expect(held.Held()).To(BeNumerically(">=", 50), "there is something to forget")
				for _, err := range []error{
					c.ours.BalancerV1alpha1().Balancers(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
					c.user.AppsV1().Deployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
				} {
					Expect(err).NotTo(HaveOccurred())
				}
				time.Sleep(time.Minute)
				Expect(held.Held()).To(BeZero())
			}
			Expect(held.Kinds()).To(BeNumerically("<=", 256))
		})
	})
})
