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

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// exact watches whether the controller creates and deletes exactly, while only replicas change: after each
// creation there are at most as many machines as replicas, and after each deletion at least as many.
// Replicas of the last minutes count, because a request may have been under way.
type exact struct {
	c        *cluster
	replicas map[string][]change // by MachineSet
	staying  map[string]map[string]bool
	broken   []string
}

type change struct {
	at time.Time
	to int64
}

func watchExact(c *cluster) *exact {
	e := &exact{c: c, replicas: map[string][]change{}, staying: map[string]map[string]bool{}}
	c.AfterWrite(func(w sim.Write) error {
		switch {
		case w.Resource == "machinesets" && w.Effect != "":
			if s := world.Decoded[mcm.MachineSet](w.Object); w.Subresource == "" {
				e.replicas[s.Name] = append(e.replicas[s.Name], change{time.Now(), int64(s.Spec.Replicas)})
			}
		case w.Resource == "machines" && w.Effect != "":
			e.observe(w)
		}
		return nil
	})
	return e
}

func (e *exact) observe(w sim.Write) {
	m := world.Decoded[mcm.Machine](w.Object)
	set := m.Labels["name"]
	if e.staying[set] == nil {
		e.staying[set] = map[string]bool{}
	}
	here := e.staying[set]
	was := len(here)
	if delete(here, m.Name); m.DeletionTimestamp == nil && w.Effect != sim.Deleted && w.Verb != "delete" {
		here[m.Name] = true
	}
	least, most := e.lately(set)
	if w.User == name && (len(here) > was && len(here) > most || len(here) < was && len(here) < least) {
		e.broken = append(e.broken, fmt.Sprintf("%s: %s %s: %d of %d to %d", time.Now().Format(time.TimeOnly), w.Verb, m.Name, len(here), least, most))
	}
}

// lately returns the least and the most replicas of the last three minutes.
func (e *exact) lately(set string) (least, most int) {
	all := e.replicas[set]
	for i, one := range slices.Backward(all) {
		if i == len(all)-1 {
			least, most = int(one.to), int(one.to)
		}
		least, most = min(least, int(one.to)), max(most, int(one.to))
		if time.Since(one.at) > 3*time.Minute {
			break
		}
	}
	return least, most
}

// trouble does one of the things that people and clouds do to a MachineSet and its machines.
func (c *cluster) trouble(random *rand.Rand, name string) {
	GinkgoHelper()
	all := c.machinesOf(name)
	if len(all) == 0 {
		return
	}
	m := all[random.IntN(len(all))]
	switch random.IntN(7) {
	case 0:
		_ = c.machines().Delete(context.Background(), m.Name, metav1.DeleteOptions{})
	case 1:
		c.fail(m)
	case 2:
		c.Set(func() { c.sick[m.Name] = !c.sick[m.Name] })
	case 3:
		world.Patch(c.machines(), m.Name, `{"metadata":{"labels":{"name":"released"}}}`)
	case 4:
		world.Create(c.machines(), fixture.Machine(fmt.Sprintf("orphan-%d", random.Uint32()), func(m *mcm.Machine) { m.Labels = map[string]string{"name": name} }))
	case 5:
		world.Patch(c.sets(), name, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"new":"%d"}}}}}}}`, random.IntN(9))
	case 6:
		world.Patch(c.machines(), m.Name, `{"metadata":{"annotations":{"machinepriority.machine.sapcloud.io":"%d"}}}`, random.IntN(5))
	}
}

// rests expects that a MachineSet has its machines, which have its template, and that nothing is written.
func (c *cluster) rests(name string, replicas int) {
	GinkgoHelper()
	s, machines := c.set(name), c.machinesOf(name)
	Expect(machines).To(HaveLen(replicas))
	for _, m := range machines {
		Expect(m.DeletionTimestamp).To(BeNil())
		Expect(m.Labels).To(HaveKeyWithValue("name", name))
		Expect(m.Spec.NodeTemplateSpec).To(Equal(s.Spec.Template.Spec.NodeTemplateSpec))
		Expect(m.Status.CurrentStatus.Phase).To(Equal(mcm.MachineRunning))
	}
	Expect(s.Status).To(And(
		HaveField("Replicas", BeEquivalentTo(replicas)), HaveField("FullyLabeledReplicas", BeEquivalentTo(replicas)), HaveField("ReadyReplicas", BeEquivalentTo(replicas)),
		HaveField("ObservedGeneration", s.Generation), HaveField("Conditions", BeEmpty()), HaveField("FailedMachines", BeNil())))
	since := len(c.Writes())
	time.Sleep(time.Hour)
	Expect(c.wrote(since)).To(BeEmpty())
}

var _ = Describe("Storms", func() {
	It("2 and 3: no machine too many is created, and none too many deleted", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 1))
			e := watchExact(c)
			c.WatchLists(seed%2 == 0, name)
			c.create("a", 3)
			c.create("b", 0)
			process := c.Start(name, controller)
			c.Storm(random, process)
			sizes := map[string]int{"a": 3, "b": 0}
			for range 16 {
				set := []string{"a", "b"}[random.IntN(2)]
				sizes[set] = random.IntN(12)
				c.scale(set, sizes[set])
				time.Sleep(time.Duration(random.IntN(240)) * time.Second)
			}
			c.Calm()
			c.settle()
			Expect(e.broken).To(BeEmpty())
			c.rests("a", sizes["a"])
			c.rests("b", sizes["b"])
		})
	})

	It("6: two instances end as in calm weather, whatever people and machines do", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			c.Require("lease lost")
			random := rand.New(rand.NewPCG(seed, 2))
			c.WatchLists(seed%2 == 0, name)
			for _, set := range []string{"a", "b", "c"} {
				c.create(set, 3)
			}
			first, second := c.Twins(name, controller)
			c.settle()
			c.Storm(random, first, second)
			for range 30 {
				c.trouble(random, []string{"a", "b", "c"}[random.IntN(3)])
				if random.IntN(4) == 0 {
					c.scale("a", random.IntN(9))
				}
				time.Sleep(time.Duration(random.IntN(40)) * time.Second)
			}
			world.Delete(c.sets(), "c")
			c.scale("a", 5)
			time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			c.Calm()
			c.Set(func() { c.sick = map[string]bool{} })
			c.settle()
			c.rests("a", 5)
			c.rests("b", 3)
			Expect(world.List[mcm.MachineSet](c, setGVR)).To(HaveLen(2))
			for _, m := range world.List[mcm.Machine](c, machineGVR) {
				left := m.Labels["name"] == "released" || m.Labels["name"] == "c" // it came when that was being deleted
				Expect(metav1.GetControllerOf(m) == nil).To(Equal(left), m.Name)
			}
		})
	})
})

var _ = Describe("Wherever the controller is killed", func() {
	It("6: the end is the same", func() {
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 1}, Apart: true,
			Story: func(w *storm.World) {
				c := adopt(w)
				world.Create(c.machines(), fixture.Machine("orphan", func(m *mcm.Machine) { m.Labels = map[string]string{"name": "s"} }))
				c.create("s", 4, func(s *mcm.MachineSet) { s.Spec.AutoPreserveFailedMachineMax = 1 })
				c.create("t", 2)
				c.Start(name, controller)
				c.settle()
				c.fail(c.machinesOf("s")[1])
				world.Patch(c.machines(), c.machinesOf("s")[2].Name, `{"metadata":{"labels":{"name":"released"}}}`)
				world.Patch(c.sets(), "s", `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"new":"yes"}}}}}}}`)
				c.settle()
				c.scale("s", 2)
				c.settle()
				world.Delete(c.sets(), "t")
				c.settle()
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				s := c.set("s")
				s.Status.LastOperation.LastUpdateTime = metav1.Time{}
				s.Status.FailedMachines = nil // has names
				var end []string
				for _, m := range world.List[mcm.Machine](c, machineGVR) {
					end = append(end, fmt.Sprint(m.Labels["name"], len(m.OwnerReferences), m.Status.CurrentStatus.Phase, m.Spec.NodeTemplateSpec.Labels, m.Annotations))
				}
				slices.Sort(end) // their names are random
				return fmt.Sprint(s.Finalizers, s.Status, len(world.List[mcm.MachineSet](c, setGVR)), end)
			},
		}, name)).To(Succeed())
	})
})

var _ = Describe("What comes and goes", func() {
	It("leaves nothing behind", Label("soak"), func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			var held *Controller
			process := c.Start(name, exposed(func(it *Controller) { held = it }))
			random := rand.New(rand.NewPCG(1, 3))
			c.Storm(random, process)
			for round := range storm.Soak(30, 10) {
				for i := range 10 {
					c.create(fmt.Sprintf("s-%d-%d", round, i), int32(random.IntN(3)))
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Second)
				for _, s := range world.List[mcm.MachineSet](c, setGVR) {
					_ = c.sets().Delete(context.Background(), s.Name, metav1.DeleteOptions{})
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			}
			c.Calm()
			c.settle()
			Expect(world.List[mcm.Machine](c, machineGVR)).To(BeEmpty())
			time.Sleep(time.Hour)
			Expect(held.Held()).To(BeZero())
		})
	})
})
