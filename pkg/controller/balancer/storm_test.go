// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

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
