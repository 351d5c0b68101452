// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
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
			c.taintController.CrashFor(20 * time.Second) // a new process meets what was raised and is not released yet
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

// ledger holds each raise against the pods that there are or will be. Four fit a machine, beside the one that fillers use.
type ledger struct {
	*books
	pods     int
	needless []string
}

func (l *ledger) needed() int32 { return 1 + int32(l.pods+3)/4 }

// audit begins a ledger of the pool that there is. The lock of the cluster guards it.
func (c *cluster) audit() *ledger {
	l := &ledger{books: c.audited(40)}
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource != "machinedeployments" || w.User != "release" {
			return nil
		}
		c.set(func() {
			if now := pool.Requested(world.Decoded[v1alpha1.MachineDeployment](w.Object)); now > l.needed() {
				l.needless = append(l.needless, fmt.Sprintf("%s: %d for workload, and %d are needed", w.Time.Format(time.TimeOnly), now, l.needed()))
			}
		})
		return nil
	})
	return l
}

// burst creates pods, some of them later where a ReplicaSet makes them.
func (c *cluster) burst(random *rand.Rand, name string, l *ledger) (rest []*corev1.Pod) {
	n := 1 + random.IntN(7)
	c.set(func() { l.pods += n })
	if random.IntN(2) == 0 {
		c.create(fresh(n, name, 1000)...)
		return nil
	}
	all, first := fresh(n, name, 1000, ByReplicaSet(c.makes(name, n))), 1+random.IntN(n)
	c.create(all[:first]...)
	return all[first:]
}

// stop makes a process stand still, until move is called, as soon as it or its twin is about to raise replicas. Where it was the one, it
// sends that when it moves again, and meanwhile its twin may have raised them.
func (c *cluster) stop(random *rand.Rand, p *storm.Process) (move func()) {
	var once sync.Once
	slow := rand.New(rand.NewPCG(random.Uint64(), 0))
	c.Control.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.User == "release" && r.Verb == "patch" && r.Resource == "machinedeployments" {
			once.Do(func() { go p.Freeze() }) // the server is locked here
		}
		return time.Duration(1+slow.IntN(20)) * time.Millisecond, time.Duration(slow.IntN(20)) * time.Millisecond
	})
	return func() {
		once.Do(func() {}) // too late to stand still
		synctest.Wait()
		p.Thaw()
	}
}

// restore puts a backup in the place of what the control cluster stores. Nodes of machines that it does not have are deleted, as orphaned
// machines are, and their pods are created anew. The owner asks again for the machines that serve: the backup may know of fewer.
func (c *cluster) restore(backup *sim.Snapshot, l *ledger) {
	GinkgoHelper()
	ctx := context.Background()
	c.taintController.Crash()
	c.scheduler.Crash()
	c.Control.Restore(backup)
	l.restored()
	known := map[string]bool{}
	for _, m := range c.machines() {
		known[m.Name] = true
	}
	nodes, err := c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	serving, orphaned := int32(0), map[string]bool{}
	for _, n := range nodes.Items {
		switch {
		case !known[n.Name]:
			orphaned[n.Name] = true
			Expect(c.core.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})).To(Succeed())
		case len(n.Spec.Taints) == 0:
			serving++
		}
	}
	d := c.deployment("a")
	c.patch("a", `{"spec":{"replicas":%d}}`, d.Spec.Replicas+max(0, serving-pool.Requested(d)))
	for _, p := range c.pods() {
		if orphaned[p.Spec.NodeName] {
			c.recreate(p)
		}
	}
	c.taintController.Restart()
	c.scheduler.Restart()
}

// recreate does what a ReplicaSet does for a pod whose Node is gone.
func (c *cluster) recreate(p corev1.Pod) {
	GinkgoHelper()
	Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})).To(Succeed())
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name + "-again", Labels: p.Labels, OwnerReferences: p.OwnerReferences}, Spec: p.Spec}
	again.Spec.NodeName = ""
	c.create(again)
}

var _ = Describe("Storms over two instances", func() {
	It("release what pods need and never more, each pod once, also after a backup was restored", func() { // laws 1, 2, 3, 6
		const rounds = 14
		storm.Seeds(suite, 4, func(seed uint64) {
			c := inhabit(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
			defer c.End()
			c.Require("lease lost", "restore")
			c.Require(struckByAccounts...)
			random := rand.New(rand.NewPCG(seed, 4))
			c.Latency(time.Millisecond)
			l, counts := c.audit(), accountsOf(seed)
			c.grow("a", 1, []int{2, 20}[seed%4/2], "1:40", counted(counts.first))
			first, second := c.Twins("release", aware(patient))
			c.settle()
			c.Storm(random, first, second)
			var backup *sim.Snapshot
			for round := range rounds {
				still := []*storm.Process{first, second}[random.IntN(2)]
				move := c.stop(random, still)
				c.taintController.CrashFor(time.Duration(random.IntN(60)) * time.Second) // what was raised is released later
				rest := c.burst(random, fmt.Sprintf("p%d", round), l)
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
				switch round {
				case rounds / 3:
					backup = c.Control.Snapshot()
				case rounds / 2, rounds - 3: // the backup knows the accounting of before
					c.account(counts.then)
				case 2 * rounds / 3:
					c.restore(backup, l)
				}
				move()
				c.create(rest...)
				l.verdict()
			}
			c.Calm()
			l.rest()
			Expect(l.needless).To(BeEmpty())
			Expect(c.waiting()).To(BeZero())
			c.expectReserve(40, counts.then)
			Expect(c.workload()).To(Equal(fmt.Sprintf("a=%d", l.needed())))
			before := len(c.Writes())
			time.Sleep(2 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})
})

var _ = Describe("Storms over two clusters", func() {
	It("leave no pod behind that could be helped, whichever cluster is cut off", func() {
		storm.Seeds(suite, 20, func(seed uint64) {
			helped(rand.New(rand.NewPCG(seed, 3)), seed, aware(usual), 26, 20)
		})
	})
})
