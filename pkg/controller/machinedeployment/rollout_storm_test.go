// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// limits are what a rollout of a MachineDeployment may not exceed.
type limits struct{ most, least int }

// bounded watches at each write of the controller whether rollouts stay within their bounds, while neither
// replicas change nor machines fail.
type bounded struct {
	limits   map[string]limits // by the label of machines
	machines map[string]map[string]*mcm.Machine
	broken   []string
}

func watchBounds(c *cluster, of map[string]limits) *bounded {
	b := &bounded{limits: of, machines: map[string]map[string]*mcm.Machine{}}
	for name := range of {
		b.machines[name] = map[string]*mcm.Machine{}
	}
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource == "machines" && w.Effect != "" {
			b.observe(w)
		}
		return nil
	})
	return b
}

func (b *bounded) observe(w sim.Write) {
	m := world.Decoded[mcm.Machine](w.Object)
	pool := m.Labels["name"]
	here := b.machines[pool]
	if here == nil {
		return
	}
	was := here[m.Name]
	if here[m.Name] = m; w.Effect == sim.Deleted {
		delete(here, m.Name)
	}
	if w.User != name {
		return
	}
	all, serve := 0, 0
	for _, one := range here {
		all++
		if serves(one) {
			serve++
		}
	}
	switch limits := b.limits[pool]; {
	case w.Effect == sim.Added && all > limits.most:
		b.broken = append(b.broken, fmt.Sprintf("%s: %s makes %d machines, not more than %d", time.Now().Format(time.TimeOnly), m.Name, all, limits.most))
	case was != nil && serves(was) && !serves(m) && serve < limits.least:
		b.broken = append(b.broken, fmt.Sprintf("%s: %s leaves %d that serve, not fewer than %d", time.Now().Format(time.TimeOnly), m.Name, serve, limits.least))
	}
}

func serves(m *mcm.Machine) bool {
	return m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == mcm.MachineRunning
}

// disturb does one of the things that people and clouds do to a MachineDeployment.
func (c *cluster) disturb(random *rand.Rand, name string) {
	GinkgoHelper()
	sets := c.setsOf(name)
	if len(sets) == 0 {
		return
	}
	s := sets[random.IntN(len(sets))]
	switch random.IntN(12) {
	case 0, 1:
		c.edit(name, `{"replicas":%d}`, random.IntN(7))
	case 2, 3:
		c.rollTo(name, []string{"x", "y", "z"}[random.IntN(3)])
	case 4:
		c.edit(name, `{"paused":%v}`, random.IntN(3) == 0)
	case 5:
		c.edit(name, `{"strategy":{"type":%q}}`, []string{"Recreate", "RollingUpdate"}[random.IntN(2)])
	case 6:
		c.edit(name, `{"strategy":{"rollingUpdate":{"maxSurge":%d,"maxUnavailable":"%d%%"}}}`, random.IntN(3), 30*random.IntN(2))
	case 7:
		_ = c.sets().Delete(context.Background(), s.Name, metav1.DeleteOptions{})
	case 8:
		world.Patch(c.sets(), s.Name, `{"metadata":{"labels":{"name":"released"}}}`)
	case 9:
		world.Patch(c.sets(), s.Name, `{"spec":{"replicas":%d}}`, random.IntN(5)-1)
	case 10:
		c.edit(name, `{"replicas":-1}`)
		c.edit(name, `{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"new":"%d"}}}}}}`, random.IntN(9))
	case 11:
		for _, m := range c.machinesOf(s.Name)[:min(1, len(c.machinesOf(s.Name)))] {
			c.fail(m)
		}
	}
}

var _ = Describe("Storms of rollouts", func() {
	It("8: neither surge nor what may be unavailable is exceeded at any write", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 1))
			c.WatchLists(seed%2 == 0, name)
			c.deploy("a", 3)
			c.deploy("b", 4, rolls(2, 1))
			c.deploy("c", 3, rolls(0, 1))
			process := c.Start(name, controller)
			c.settle()
			b := watchBounds(c, map[string]limits{"a": {4, 3}, "b": {6, 3}, "c": {3, 2}})
			for pool := range b.limits {
				for _, s := range c.setsOf(pool) {
					for _, m := range c.machinesOf(s.Name) {
						b.machines[pool][m.Name] = m
					}
				}
			}
			c.Storm(random, process)
			for range 14 {
				pool := []string{"a", "b", "c"}[random.IntN(3)]
				if random.IntN(4) == 0 {
					c.edit(pool, `{"paused":%v}`, random.IntN(2) == 0)
				} else {
					c.rollTo(pool, []string{"x", "y", "z"}[random.IntN(3)])
				}
				time.Sleep(time.Duration(random.IntN(180)) * time.Second)
			}
			c.Calm()
			for pool := range b.limits {
				c.edit(pool, `{"paused":false}`)
			}
			c.settle()
			Expect(b.broken).To(BeEmpty())
			for pool := range b.limits {
				c.isRolled(pool)
			}
			c.isQuiet()
		})
	})

	It("6 and 7: two instances end as in calm weather, whatever people and machines do", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			c.Require("lease lost")
			random := rand.New(rand.NewPCG(seed, 2))
			c.WatchLists(seed%2 == 0, name)
			all := []string{"a", "b", "c"}
			for _, pool := range all {
				c.deploy(pool, 3)
			}
			first, second := c.Twins(name, controller)
			c.settle()
			c.Storm(random, first, second)
			for range 40 {
				c.disturb(random, all[random.IntN(3)])
				time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			}
			world.Delete(c.deployments(), "c")
			c.edit("a", `{"replicas":4,"paused":false,"strategy":{"type":"RollingUpdate"}}`)
			c.edit("b", `{"replicas":2,"paused":false,"revisionHistoryLimit":1}`)
			time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			c.Calm()
			c.settle()
			c.isRolled("a")
			c.isRolled("b")
			Expect(len(c.setsOf("b"))).To(BeNumerically("<=", 2))
			Expect(world.List[api.MachineDeployment](c, deploymentGVR)).To(HaveLen(2))
			for _, s := range world.List[mcm.MachineSet](c, setGVR) {
				Expect(metav1.GetControllerOf(s) == nil).To(Equal(s.Labels["name"] == "released"), s.Name)
				if s.Spec.Replicas >= 0 { // with fewer it is invalid, and nothing changes
					Expect(c.machinesOf(s.Name)).To(HaveLen(int(s.Spec.Replicas)), s.Name)
				}
			}
			c.isQuiet()
		})
	})
})

var _ = DescribeTable("6: Wherever the controller of rollouts is killed, the end is the same",
	func(story func(c *cluster)) {
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 1}, Apart: true,
			Story: func(w *storm.World) {
				c := adopt(w)
				c.Start(name, controller)
				story(c)
				c.settle()
			},
			End: func(w *storm.World) any { return (&cluster{World: w}).ending() },
		}, name)).To(Succeed())
	},
	Entry("when it adopts, rolls, scales and cleans up", func(c *cluster) {
		c.create("s", 1, byHand("d"))
		c.deploy("d", 1, func(d *api.MachineDeployment) { d.Spec.RevisionHistoryLimit = new(int32) })
		c.settle()
		c.rollTo("d", "other")
		time.Sleep(10 * time.Second)
		c.edit("d", `{"replicas":2}`)
	}),
	Entry("when it recreates and deletes", func(c *cluster) {
		c.deploy("d", 1, recreates)
		c.settle()
		c.rollTo("d", "other")
		c.settle()
		world.Delete(c.deployments(), "d")
	}),
)

// ending is what is there, without times, names of machines and counts of writes.
func (c *cluster) ending() (end []string) {
	for _, d := range world.List[api.MachineDeployment](c, deploymentGVR) {
		for i := range d.Status.Conditions {
			d.Status.Conditions[i].LastUpdateTime, d.Status.Conditions[i].LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
		d.Status.ObservedGeneration -= d.Generation
		end = append(end, fmt.Sprint(d.Name, d.Finalizers, d.Annotations, d.Status))
	}
	for _, s := range world.List[mcm.MachineSet](c, setGVR) {
		s.Status.LastOperation.LastUpdateTime = metav1.Time{}
		s.Status.ObservedGeneration -= s.Generation
		end = append(end, fmt.Sprint(s.Name, s.Finalizers, s.Labels, s.Annotations, s.Spec.Selector, s.Spec.Replicas, s.Status))
	}
	for _, m := range world.List[mcm.Machine](c, machineGVR) {
		end = append(end, fmt.Sprint(m.Labels["name"], m.OwnerReferences[0].Name, m.Spec.Class.Name, m.Status.CurrentStatus.Phase))
	}
	slices.Sort(end)
	return end
}

var _ = Describe("MachineDeployments that come and go", func() {
	It("leave nothing behind, with their reserves", Label("soak"), func() {
		storm.Bubble(suite, func() {
			c := adoptReserved(storm.NewApart(sim.Options{Seed: 1}))
			defer c.End()
			var held *Controller
			process := c.Start(name, keepingWith(everything, func(it *Controller) { held = it }))
			random := rand.New(rand.NewPCG(1, 3))
			kept := 0
			c.Storm(random, process)
			for round := range storm.Soak(12, 5) {
				for i := range 5 {
					c.deploy(fmt.Sprintf("d-%d-%d", round, i), int32(random.IntN(3)), spared(int32(random.IntN(3))))
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Second)
				for _, d := range world.List[api.MachineDeployment](c, deploymentGVR) {
					if d.DeletionTimestamp == nil && random.IntN(2) == 0 {
						c.rollTo(d.Name, "other")
					}
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Second)
				kept += held.Remembered()
				for _, d := range world.List[api.MachineDeployment](c, deploymentGVR) {
					_ = c.deployments().Delete(context.Background(), d.Name, metav1.DeleteOptions{})
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			}
			c.Calm()
			c.settle()
			Expect(world.List[mcm.MachineSet](c, setGVR)).To(BeEmpty())
			Expect(world.List[mcm.Machine](c, machineGVR)).To(BeEmpty())
			Expect(kept).NotTo(BeZero(), "reserves that were remembered")
			time.Sleep(time.Hour)
			Expect(held.Held()).To(BeZero())
		})
	})
})
