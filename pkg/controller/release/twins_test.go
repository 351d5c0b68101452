// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
)

// ledger holds each write of replicas against the pods that there are or will be. Four fit a machine, beside the one that fillers use.
type ledger struct {
	pods     int
	replicas int64
	wrong    []string
}

func (l *ledger) needed() int64 { return 1 + int64(l.pods+3)/4 }

// audit begins a ledger of the pool that there is. The lock of the cluster guards it.
func (c *cluster) audit() *ledger {
	l := &ledger{}
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource != "machinedeployments" {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		now := w.Object["spec"].(map[string]any)["replicas"].(int64)
		if w.User == "release" && (now < l.replicas || now > l.needed()) {
			l.wrong = append(l.wrong, fmt.Sprintf("%s: replicas from %d to %d, and %d are needed", w.Time.Format(time.TimeOnly), l.replicas, now, l.needed()))
		}
		l.replicas = now
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
	all, first := fresh(n, name, 1000, by(c.makes(name, n))), 1+random.IntN(n)
	c.create(all[:first]...)
	return all[first:]
}

// stop makes a process stand still, until it is thawed, as soon as it or its twin is about to raise replicas. Where it was the one, it
// sends that when it moves again, and meanwhile its twin may have raised them.
func (c *cluster) stop(random *rand.Rand, p *storm.Process) {
	var once sync.Once
	slow := rand.New(rand.NewPCG(random.Uint64(), 0))
	c.Control.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.User == "release" && r.Verb == "patch" && r.Resource == "machinedeployments" {
			once.Do(func() { go p.Freeze() }) // the server is locked here
		}
		return time.Duration(1+slow.IntN(20)) * time.Millisecond, time.Duration(slow.IntN(20)) * time.Millisecond
	})
}

// restore puts a backup in the place of what the control cluster stores. Nodes of machines that it does not have are deleted, as orphaned
// machines are, and their pods are created anew. The owner asks again for the machines that serve: the backup may know of fewer.
func (c *cluster) restore(backup *sim.Snapshot, l *ledger) {
	GinkgoHelper()
	ctx := context.Background()
	c.keeper.Crash()
	c.scheduler.Crash()
	c.Control.Restore(backup)
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
	replicas := max(serving, c.deployments()[0].Spec.Replicas)
	c.set(func() { l.replicas = int64(replicas) })
	c.patch("a", `{"spec":{"replicas":%d}}`, replicas)
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
		storm.Seeds(suite, 1, func(seed uint64) {
			c := adopt(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
			defer c.End()
			c.Require("lease lost", "restore")
			random := rand.New(rand.NewPCG(seed, 4))
			c.Latency(time.Millisecond)
			c.grow("a", 1, 20, "1:40")
			l := c.audit()
			first, second := c.Twins("release", aware(usual))
			c.settle()
			c.Storm(random, first, second)
			var backup *sim.Snapshot
			for round := range rounds {
				still := []*storm.Process{first, second}[random.IntN(2)]
				c.stop(random, still)
				c.keeper.CrashFor(time.Duration(random.IntN(60)) * time.Second) // what was raised is released later
				rest := c.burst(random, fmt.Sprintf("p%d", round), l)
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
				switch round {
				case rounds / 3:
					backup = c.Control.Snapshot()
				case 2 * rounds / 3:
					c.restore(backup, l)
				}
				still.Thaw()
				c.create(rest...)
			}
			c.Calm()
			c.settle()
			Expect(l.wrong).To(BeEmpty())
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal(fmt.Sprintf("a=%d", l.needed())))
			before := len(c.Writes())
			time.Sleep(2 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})
})
