// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// foreign creates a machine of each MachineSet every few seconds, without end: half of them have an owner,
// the others are to be adopted.
func foreign(random *rand.Rand) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		_, ours := world.Clients(config)
		machines, sets := ours.MachineV1alpha1().Machines(fixture.Namespace), ours.MachineV1alpha1().MachineSets(fixture.Namespace)
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Duration(1+random.IntN(8)) * time.Second):
			}
			all, err := sets.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue // it tries again
			}
			for _, s := range all.Items {
				_, _ = machines.Create(ctx, fixture.Machine(fmt.Sprintf("%s-foreign-%d", s.Name, n), func(m *mcm.Machine) {
					m.Labels = s.Spec.Template.Labels
					if n%2 == 0 {
						m.OwnerReferences = world.OwnedBy("MachineSet", &s)
					}
				}), metav1.CreateOptions{})
			}
		}
	}
}

// frozenSets watches what the controller creates for MachineSets that are frozen.
type frozenSets struct {
	frozen map[string]bool
	// froze are the MachineSets that were frozen at any time.
	froze map[string]bool
	// staying are the machines that the controller has created, without those that are leaving, by MachineSet,
	// and most how many there were at once.
	staying map[string]map[string]bool
	most    map[string]int
	broken  []string
}

func watchFrozen(c *cluster) *frozenSets {
	f := &frozenSets{frozen: map[string]bool{}, froze: map[string]bool{}, staying: map[string]map[string]bool{}, most: map[string]int{}}
	c.AfterWrite(func(w sim.Write) error {
		switch {
		case w.Effect == "":
		case w.Resource == "machinesets":
			f.observeSet(world.Decoded[mcm.MachineSet](w.Object))
		case w.Resource == "machines":
			f.observeMachine(w, world.Decoded[mcm.Machine](w.Object))
		}
		return nil
	})
	return f
}

func (f *frozenSets) observeSet(s *mcm.MachineSet) {
	is := pool.Frozen(s)
	f.froze[s.Name] = f.froze[s.Name] || is
	f.frozen[s.Name] = is
}

func (f *frozenSets) observeMachine(w sim.Write, m *mcm.Machine) {
	owner := metav1.GetControllerOf(m)
	if owner == nil {
		return
	}
	here := f.staying[owner.Name]
	if here == nil {
		here = map[string]bool{}
		f.staying[owner.Name] = here
	}
	if w.Effect == sim.Added && w.User == name {
		here[m.Name] = true
		if f.frozen[owner.Name] {
			f.broken = append(f.broken, fmt.Sprintf("%s created while %s is frozen", m.Name, owner.Name))
		}
	}
	if m.DeletionTimestamp != nil || w.Effect == sim.Deleted {
		delete(here, m.Name)
	}
	f.most[owner.Name] = max(f.most[owner.Name], len(here))
}

// deleteStaying deletes the machines of a MachineSet that are not leaving.
func (c *cluster) deleteStaying(set string) {
	GinkgoHelper()
	for _, m := range c.machinesOf(set) {
		if m.DeletionTimestamp == nil {
			world.Delete(c.machines(), m.Name)
		}
	}
}

func (c *cluster) staying(set string) (n int) {
	for _, m := range c.machinesOf(set) {
		if m.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// expectFrozen expects that the MachineDeployment pool and its MachineSet, and the one without, are frozen,
// or that none of them is.
func (c *cluster) expectFrozen(is bool) {
	GinkgoHelper()
	label, condition := HaveKeyWithValue(pool.FreezeLabel, "True"), ContainElement(HaveField("Type", BeEquivalentTo("Frozen")))
	if !is {
		label, condition = Not(label), Not(condition)
	}
	for _, s := range world.List[mcm.MachineSet](c, setGVR) {
		Expect(s.Labels).To(label, s.Name)
		Expect(s.Status.Conditions).To(condition, s.Name)
	}
	d := world.Stored[v1alpha1.MachineDeployment](c, deploymentGVR, fixture.Namespace, "pool")
	Expect(d.Labels).To(label)
	Expect(d.Status.Conditions).To(condition)
}

var _ = Describe("Machines that others create without end", func() {
	It("7: freeze a MachineSet, which thaws and is complete once they have gone", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 4))
			f := watchFrozen(c)
			c.WatchLists(seed%2 == 0, name)
			c.create("alone", 3)
			world.Create(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), world.MachineDeployment("pool", 3))
			process := c.Start(name, controller)
			c.settle()
			var sets []string
			for _, s := range world.List[mcm.MachineSet](c, setGVR) {
				sets = append(sets, s.Name)
			}
			Expect(sets).To(HaveLen(2))

			c.Set(func() { c.cloud.Drain = 100 * time.Hour })
			c.Storm(random, process)
			others := c.Start("foreign", foreign(rand.New(rand.NewPCG(seed, 5))))
			for range 8 {
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
				c.deleteStaying(sets[random.IntN(2)])
			}
			Expect(others.Stop()).To(Succeed())
			time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			c.Calm()
			c.settle()
			for _, set := range sets {
				c.deleteStaying(set)
			}
			c.settle()
			c.expectFrozen(true)
			for _, set := range sets {
				Expect(c.staying(set)).To(BeZero(), "none is created")
			}
			since := len(c.Writes())
			time.Sleep(time.Hour)
			Expect(c.wrote(since)).To(BeEmpty())

			c.Set(func() { c.cloud.Drain = 10 * time.Second })
			c.settle()
			c.expectFrozen(false)
			for _, set := range sets {
				Expect(c.machinesOf(set)).To(HaveLen(3))
				Expect(f.froze[set]).To(BeTrue())
				Expect(f.most[set]).To(BeNumerically("<=", 3), "the controller counts its own machines exactly")
			}
			Expect(f.broken).To(BeEmpty())
			c.rests("alone", 3)
		})
	})

	It("F6: are not needed for that, machines that leave slowly do, and each change is reported once", func() {
		play(func(c *cluster) {
			reported := func(reason string) (n int) {
				for _, e := range world.List[corev1.Event](c, corev1.SchemeGroupVersion.WithResource("events")) {
					if e.Reason == reason && e.InvolvedObject.Kind == "MachineSet" && e.InvolvedObject.Name == "s" {
						n += int(max(1, e.Count))
					}
				}
				return n
			}
			c.create("s", 5)
			c.settle()
			c.Set(func() { c.cloud.Drain = 100 * time.Hour })
			c.scale("s", 1)
			c.settle()
			c.deleteStaying("s")
			c.settle()
			Expect(c.staying("s")).To(BeZero())
			Expect([]int{reported("FrozeMachineSet"), reported("UnfrozeMachineSet")}).To(Equal([]int{1, 0}))
			c.Set(func() { c.cloud.Drain = 0 })
			c.settle()
			Expect([]int{reported("FrozeMachineSet"), reported("UnfrozeMachineSet")}).To(Equal([]int{1, 1}))
			c.rests("s", 1)
		})
	})
})
