// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// Each of 13 seeds in a row begins with another of the 13 answers that a write can get, and there are few writes in a storm here.
const everyAnswer = 13

var _ = Describe("Storms", func() {
	It("release exactly what pods need, each pod once, however late caches are and whatever fails", func() { // laws 1, 2, 3
		storm.Seeds(suite, everyAnswer, func(seed uint64) {
			c := inhabit(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
			defer c.End()
			c.Require(struckByAccounts...)
			random := rand.New(rand.NewPCG(seed, 1))
			c.Latency(time.Millisecond)
			within, counts := c.audited(40), accountsOf(seed)
			c.grow("a", 1, []int{2, 3, 20}[random.IntN(3)], "1:40", counted(counts.first))
			p := c.Start("release", controller(patient))
			c.settle()
			c.Storm(random, p)
			total := 0
			for burst := range 6 + random.IntN(4) {
				if burst == 2 {
					c.account(counts.then)
				}
				n := 1 + random.IntN(12)
				total += n
				name, rest := fmt.Sprintf("p%d", burst), []*corev1.Pod(nil)
				if creator := random.IntN(4); creator < 2 {
					c.create(fresh(n, name, 1000)...)
				} else {
					owned := func() func(*corev1.Pod) { return ByReplicaSet(c.makes(name, n)) }
					if creator == 3 {
						owned = func() func(*corev1.Pod) { return byJob(c.employs(name, n)) }
					}
					all, first := fresh(n, name, 1000, owned()), 1+random.IntN(n)
					c.create(all[:first]...)
					rest = all[first:]
				}
				time.Sleep(time.Duration(random.IntN(200)) * time.Second)
				if random.IntN(3) == 0 {
					p.CrashFor(time.Duration(random.IntN(5000)) * time.Millisecond)
				}
				c.create(rest...)
				within.verdict()
			}
			c.Calm()
			within.rest()
			Expect(c.waiting()).To(BeZero())
			c.expectReserve(40, counts.then)
			Expect(c.workload()).To(Equal(fmt.Sprintf("a=%d", 1+(total+3)/4)), "four pods to a machine")
			before := len(c.Writes())
			time.Sleep(2 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	It("leave no pod behind that could be helped, while pods come and go and others raise replicas, too", func() {
		storm.Seeds(suite, everyAnswer, func(seed uint64) {
			helped(rand.New(rand.NewPCG(seed, 2)), seed, controller(patient), 24, 80)
		})
	})

	It("end the same, wherever the controller is killed", func() {
		for _, seed := range []uint64{1, 2, 3} {
			counts := accountsOf(seed)
			By(fmt.Sprint(counts))
			Expect(storm.CrashPoints(suite, killed(counts), "release")).To(Succeed())
		}
	})
})

// killed is a story whose end does not depend on when the controller is killed. Pods take the whole reserve of two pools, and then the
// accounting changes and they need more.
func killed(counts accounts) storm.Scenario {
	return storm.Scenario{
		Options: sim.Options{Seed: 2, Resources: served}, Apart: true,
		Story: func(w *storm.World) {
			c := inhabit(w)
			c.Latency(time.Millisecond)
			within := c.audited(10)
			c.grow("a", 1, 3, "1:10", counted(counts.first))
			c.grow("b", 1, 4, "1:10", counted(counts.first))
			w.Start("release", controller(usual))
			c.settle()
			c.keeper.CrashFor(20 * time.Second) // a new process meets what was raised and is not released yet
			c.create(fresh(6, "p", 1000, InZone("a"))...)
			time.Sleep(time.Second)
			c.create(fresh(3, "q", 4000, InZone("b"))...)
			c.create(fresh(5, "r", 1000, InZone("a"))...)
			time.Sleep(time.Second)
			c.account(counts.then)
			c.create(fresh(3, "s", 4000, InZone("b"))...)
			within.rest()
			c.expectReserve(10, counts.then)
			Expect(c.workload()).To(Equal("a=4 b=7"), "four small pods to a machine, or one large one")
			Expect(c.waiting()).To(BeZero())
		},
		End: func(w *storm.World) any {
			c := &cluster{World: w}
			return fmt.Sprintf("%s, %s, %d wait", c.workload(), c.replicas(), c.waiting())
		},
	}
}

// few is the max of pools whose reserve does not suffice for all.
const few = 8

// helped lets a storm rage over two pools while pods come and go and others raise replicas, in so many steps of at most pause seconds
// each. In the end no pod waits that could be helped, and nothing more is written.
func helped(random *rand.Rand, seed uint64, program storm.Program, steps, pause int) {
	GinkgoHelper()
	c := inhabit(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
	defer c.End()
	c.Require(struckByAccounts...)
	c.Latency(time.Millisecond)
	within, counts := c.audited(few), accountsOf(seed)
	bounds := fmt.Sprintf("1:%d", few)
	c.grow("a", 1, 4, bounds, counted(counts.first))
	c.grow("b", 1, 1+random.IntN(2), bounds, counted(counts.first))
	p := c.Start("release", program)
	c.settle()
	c.Storm(random, p)
	for step := range steps {
		if step == steps/3 {
			c.account(counts.then)
		}
		c.disturb(random, p, step)
		time.Sleep(time.Duration(random.IntN(pause)) * time.Second)
		within.verdict()
	}
	c.Calm()
	within.rest()
	c.expectReserve(few, counts.then)
	for _, d := range c.deployments() {
		Expect(c.waiting() == 0 || pool.Requested(&d) == few).To(BeTrue(), "%d wait, %s", c.waiting(), c.workload())
	}
	before := len(c.Writes())
	time.Sleep(2 * time.Hour)
	Expect(c.writes(before)).To(BeEmpty())
}

// disturb does one thing that happens in clusters.
func (c *cluster) disturb(random *rand.Rand, p *storm.Process, step int) {
	switch random.IntN(5) {
	case 0, 1:
		size := []int64{1000, 2000, 4000}[random.IntN(3)]
		c.create(fresh(1+random.IntN(5), fmt.Sprintf("p%d", step), size)...)
	case 2:
		if all := c.pods(); len(all) > 0 {
			_ = c.core.CoreV1().Pods(ns).Delete(context.Background(), all[random.IntN(len(all))].Name, metav1.DeleteOptions{})
		}
	case 3:
		p.CrashFor(time.Duration(random.IntN(8000)) * time.Millisecond)
	case 4:
		for _, d := range c.deployments() {
			if d.Name == "a" && d.Spec.Replicas < few {
				c.patch("a", `{"spec":{"replicas":%d}}`, d.Spec.Replicas+1)
			}
		}
		c.Compact()
	}
}
