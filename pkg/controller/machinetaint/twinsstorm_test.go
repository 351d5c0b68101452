// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// adoptTwins runs two instances of the process. One of them leads, and for a moment both may.
func adoptTwins(w *storm.World, o machinetaint.Options) (c *cluster, processes []*storm.Process) {
	c = inhabit(w)
	first, second := w.Twins(evenkeel, manager.Program(o))
	c.process = first
	machines := c.start()
	return c, []*storm.Process{first, second, machines}
}

// restore puts a backup in the place of what the control cluster stores. Its watchers end, as our daemons do, and start anew.
// Nodes that belong to no machine any more are deleted, as orphaned machines are; a machine that has lost its Node is sick. The owner asks
// for the replicas again that pods need: the backup does not know of them.
func (c *cluster) restore(backup *sim.Snapshot, g *guard, processes ...*storm.Process) {
	GinkgoHelper()
	for _, p := range processes {
		p.Crash()
	}
	c.Control.Restore(backup)
	c.scale(max(3, len(c.Objects(podsGVR))))
	names := g.restart(c.machines())
	nodes, err := c.core.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, n := range nodes.Items {
		if i := slices.Index(names, n.Name); i >= 0 {
			names = slices.Delete(names, i, i+1)
			continue
		}
		if err := c.core.CoreV1().Nodes().Delete(context.Background(), n.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			Expect(err).NotTo(HaveOccurred())
		}
	}
	c.cloud.set(func() {
		c.cloud.lost = map[string]bool{}
		for _, name := range names {
			g.forgive(name)
			c.cloud.lost[name] = true
		}
	})
	for _, p := range processes {
		p.CrashFor(20 * time.Second)
	}
}

// restart begins with the machines that there are, and returns their names.
func (g *guard) restart(machines []*mcmapi.Machine) (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.class, g.leaving, g.places.reserve = map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, m := range machines {
		g.places.reserve[m.Name] = marked(m)
		names = append(names, m.Name)
		g.class[m.Name] = m.Spec.Class.Name
		g.current = m.Spec.Class.Name
	}
	return names
}

var _ = Describe("Storms over two instances", func() {
	It("end as calm weather does, also after a backup was restored, keep all invariants meanwhile, and then nothing is written", func() {
		storm.Seeds(suite, 1, func(seed uint64) {
			settings := counted(seed)
			c, processes := adoptTwins(storm.NewApart(sim.Options{Seed: seed, Resources: served}), machinetaint.Options{Settings: settings})
			defer c.End()
			c.Require("lease lost", "restore")
			random := rand.New(rand.NewPCG(seed, 8))
			g := newGuard(c)
			c.AfterWrite(g.follow)
			c.work(3)
			c.pool(3, excess(2), bounds(fmt.Sprintf("1:%d", most)))
			c.settle()
			backup := c.Control.Snapshot()
			c.Storm(random, processes[:2]...)
			for i, kind := range random.Perm(disturbances) {
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
				if i == disturbances/2 {
					c.restore(backup, g, processes...)
				}
				c.disturb(kind, random, g)
			}
			c.calm()
			g.endPatience()
			time.Sleep(2 * time.Hour) // longer than what could not be made is waited for
			Expect(g.verdict()).To(BeEmpty(), "%s", strings.Join(g.story, "\n"))
			c.wantLastly(seed)
			c.settle()
			Expect(g.verdict()).To(BeEmpty(), "%s", strings.Join(g.story, "\n"))
			c.expectReserve(settings.Accounting)
			Expect(g.looked["created by one that leads no more"]).To(BeNumerically("<", g.looked["I1"]))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.written(since)).To(BeEmpty())
		})
	})
})
