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
	c.keeper.Crash()
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
	c.keeper.Restart()
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
				c.keeper.CrashFor(time.Duration(random.IntN(60)) * time.Second) // what was raised is released later
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
