// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// refuseSets makes the API server refuse to create MachineSets while it holds.
func (c *cluster) refuseSets(holds *atomic.Bool, because func() error) {
	c.OnWrite(func(w sim.Write) error {
		if holds.Load() && w.Verb == "create" && w.Resource == "machinesets" && w.User == name {
			return because()
		}
		return nil
	})
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "machinesets"}, "", errors.New("exceeded quota"))
}

// progressOf returns "status reason" of the condition Progressing of a MachineDeployment.
func (c *cluster) progressOf(name string) string {
	for _, one := range c.deployment(name).Status.Conditions {
		if one.Type == mcm.MachineDeploymentProgressing {
			return string(one.Status) + " " + one.Reason
		}
	}
	return ""
}

func selecting(label string) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) {
		d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = map[string]string{"name": label}, map[string]string{"name": label}
	}
}

// byHand makes a MachineSet one that a MachineDeployment selects.
func byHand(name string) func(*mcm.MachineSet) {
	return func(s *mcm.MachineSet) {
		s.Labels = map[string]string{"name": name}
		s.Spec.Selector.MatchLabels, s.Spec.Template.Labels = map[string]string{"name": name}, map[string]string{"name": name}
	}
}

var _ = Describe("A MachineDeployment", func() {
	It("7: gets a MachineSet with its machines in few writes, and then nothing is written", func() {
		play(func(c *cluster) {
			c.deploy("d", 2)
			time.Sleep(time.Second)
			Expect(c.wrote(0)).To(HaveExactElements("patch machinedeployments", "create machinesets", "create machines", "create machines",
				"patch machinedeployments status", "patch machinedeployments", "patch machinesets status", "patch machinedeployments status"))
			Expect(c.setsOf("d")[0].Finalizers).To(ConsistOf(plan.Finalizer))
			c.settle()
			c.isRolled("d")
			Expect(c.events()).To(ConsistOf("Normal ScalingMachineSet", "Normal SuccessfulCreate"))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(since)).To(BeEmpty())
		})
	})

	It("7: rolls, scales and goes", func() {
		play(func(c *cluster) {
			c.deploy("d", 3)
			c.settle()
			c.rollTo("d", "other")
			c.settle()
			c.isRolled("d")
			Expect(c.setsOf("d")).To(HaveLen(2))
			c.edit("d", `{"replicas":5}`)
			c.settle()
			c.isRolled("d")
			world.Delete(c.deployments(), "d")
			c.settle()
			Expect(world.List[api.MachineDeployment](c, deploymentGVR)).To(BeEmpty())
			Expect(world.List[mcm.MachineSet](c, setGVR)).To(BeEmpty())
			Expect(world.List[mcm.Machine](c, machineGVR)).To(BeEmpty())
		})
	})

	It("7: creates no second MachineSet while its stores do not show the first", func() {
		play(func(c *cluster) {
			attempts := 0
			c.OnWrite(func(w sim.Write) error {
				if w.Verb == "create" && w.Resource == "machinesets" {
					attempts++
				}
				return nil
			})
			c.Lag("machinesets", func() time.Duration { return time.Minute }, name)
			c.Lag("machines", func() time.Duration { return 2 * time.Minute }, name)
			c.deploy("d", 2)
			time.Sleep(time.Minute)
			c.rollTo("d", "other")
			c.settle()
			c.isRolled("d")
			Expect(attempts).To(Equal(2))
		})
	})

	It("7: takes the MachineSet whose creation was not answered", func() {
		play(func(c *cluster) {
			lost := false
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machinesets" && w.Verb == "create" && !lost {
					lost = true
					return apierrors.NewTimeoutError("the answer is lost", 0)
				}
				return nil
			})
			c.Lag("machinesets", func() time.Duration { return time.Minute }, name)
			c.deploy("d", 2)
			time.Sleep(20 * time.Second)
			Expect(c.setsOf("d")).To(HaveLen(1))
			Expect(c.machinesOf(c.setsOf("d")[0].Name)).To(HaveLen(2), "before the watch shows it")
			Expect(c.deployment("d").Status.CollisionCount).To(BeNil())
			c.settle()
			c.isRolled("d")
		})
	})

	It("7: waits with growing pauses for a MachineSet that it is to adopt and its stores do not show yet", func() {
		play(func(c *cluster) {
			d := c.deploy("d", 1)
			c.settle()
			orphan := c.setsOf("d")[0].DeepCopy()
			world.Delete(c.deployments(), "d")
			c.settle()
			c.Lag("machinesets", sim.Constantly(time.Minute), name)
			orphan.ResourceVersion, orphan.UID, orphan.OwnerReferences = "", "", nil
			world.Create(c.sets(), orphan)
			tries := 0
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == name && r.Verb == "create" && r.Resource == "machinesets" {
					tries++
				}
				return 2 * time.Millisecond, 0
			})
			d.ResourceVersion, d.UID = "", ""
			world.Create(c.deployments(), d)
			c.settle()
			c.isRolled("d")
			Expect(tries).To(BeNumerically("<", 20))
		})
	})

	It("2: creates no machine twice for a MachineSet that its stores do not show yet", func() {
		play(func(c *cluster) {
			attempts := 0
			fails := func(at int) func(w sim.Write) error {
				return func(w sim.Write) error {
					if w.Resource == "machines" && w.Verb == "create" && attempts == at {
						return apierrors.NewTimeoutError("the answer is lost", 0)
					}
					return nil
				}
			}
			c.OnWrite(func(w sim.Write) error {
				if w.Resource == "machines" && w.Verb == "create" {
					attempts++
				}
				return fails(2)(w)
			})
			c.AfterWrite(fails(1)) // and yet it has taken effect
			c.Lag("machinesets", func() time.Duration { return time.Minute }, name)
			c.Lag("machines", func() time.Duration { return time.Minute }, name)
			c.deploy("d", 2)
			time.Sleep(40 * time.Second)
			Expect(c.machinesOf(c.setsOf("d")[0].Name)).To(HaveLen(2))
			c.settle()
			c.isRolled("d")
		})
	})

	It("8: reads a MachineSet whose write was not answered before it decides again", func() {
		play(func(c *cluster) {
			c.deploy("d", 2)
			c.settle()
			lost := false
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machinesets" && w.Verb == "patch" && w.Subresource == "" && !lost {
					lost = true
					return apierrors.NewTimeoutError("the answer is lost", 0)
				}
				return nil
			})
			c.Lag("machinesets", func() time.Duration { return time.Minute }, name)
			c.edit("d", `{"replicas":3}`)
			time.Sleep(20 * time.Second)
			Expect(lost).To(BeTrue())
			Expect(c.machinesOf(c.setsOf("d")[0].Name)).To(HaveLen(3), "before the watch shows it")
			c.settle()
			c.isRolled("d")
		})
	})

	It("8: counts a machine whose creation was not answered, also when it rolls to another template", func() {
		play(func(c *cluster) {
			c.deploy("d", 1)
			c.settle()
			b := watchBounds(c, map[string]limits{"d": {2, 1}})
			for _, m := range c.machinesOf(c.setsOf("d")[0].Name) {
				b.machines["d"][m.Name] = m
			}
			lost := false
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machines" && w.Verb == "create" && !lost {
					lost = true
					return apierrors.NewTimeoutError("the answer is lost", 0)
				}
				return nil
			})
			c.Lag("machines", func() time.Duration { return time.Minute }, name)
			c.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Failed}}, name)
			c.rollTo("d", "x")
			time.Sleep(time.Second)
			Expect(lost).To(BeTrue())
			c.rollTo("d", "y")
			time.Sleep(10 * time.Second)
			c.Trouble("machines", sim.Trouble{}, name)
			c.settle()
			Expect(b.broken).To(BeEmpty())
			c.isRolled("d")
		})
	})

	It("T4: gives its MachineSet another name if that is taken", func() {
		play(func(c *cluster) {
			d := c.deploy("d", 1)
			c.settle()
			taken := c.setsOf("d")[0].Name
			world.Delete(c.deployments(), "d")
			c.settle()
			c.create(taken, 0)
			d.ResourceVersion, d.UID = "", ""
			world.Create(c.deployments(), d)
			c.settle()
			c.isRolled("d")
			Expect(c.setsOf("d")[0].Name).NotTo(Equal(taken))
			Expect(c.deployment("d").Status.CollisionCount).To(HaveValue(BeEquivalentTo(1)))
		})
	})

	It("T5: says that its MachineSet is refused, goes on with the others, and creates it when it can", func() {
		play(func(c *cluster) {
			c.deploy("d", 2)
			c.settle()
			var full atomic.Bool
			full.Store(true)
			c.refuseSets(&full, forbidden)
			c.rollTo("d", "other")
			time.Sleep(time.Hour)
			Expect(c.progressOf("d")).To(Equal("False MachineSetCreateError"))
			Expect(c.events()).To(ContainElement("Warning MachineSetCreateError"))
			since := len(c.Writes())
			time.Sleep(time.Hour)
			Expect(c.wrote(since)).To(BeEmpty(), "it is said once")
			old := c.setsOf("d")[0]
			c.fail(c.machinesOf(old.Name)[0])
			time.Sleep(5 * time.Minute)
			Expect(c.machinesOf(old.Name)).To(HaveEach(HaveField("Status.CurrentStatus.Phase", mcm.MachineRunning)), "a failed machine is replaced")
			Expect(c.machinesOf(old.Name)).To(HaveLen(2))
			full.Store(false)
			c.settle()
			c.isRolled("d")
		})
	})

	It("T5: says nothing while the namespace goes, or answers are lost", func() {
		for _, because := range []func() error{
			func() error { return apierrors.NewTimeoutError("no answer", 0) },
			func() error {
				err := apierrors.NewForbidden(schema.GroupResource{Resource: "machinesets"}, "", errors.New("it is being terminated"))
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating"}}
				return err
			},
		} {
			play(func(c *cluster) {
				var full atomic.Bool
				full.Store(true)
				c.refuseSets(&full, because)
				c.deploy("d", 2)
				time.Sleep(10 * time.Minute)
				Expect(c.progressOf("d")).To(BeEmpty())
				Expect(c.events()).To(BeEmpty())
			})
		}
	})

	It("E2: says what is wrong with it, and goes on when it is right", func() {
		play(func(c *cluster) {
			c.deploy("d", 2, func(d *api.MachineDeployment) { d.Spec.Strategy.RollingUpdate = nil })
			c.settle()
			d := c.deployment("d")
			Expect(d.Status.Conditions).To(ConsistOf(And(HaveField("Reason", plan.InvalidSpec), HaveField("Message", ContainSubstring("maxSurge")))))
			Expect(d.Status.ObservedGeneration).To(BeZero())
			Expect(c.events()).To(ConsistOf("Warning InvalidSpec"))
			c.edit("d", `{"strategy":{"type":"Recreate"}}`)
			c.settle()
			c.isRolled("d")
		})
	})

	It("O4, T14: adopts a MachineSet that was on its own, with its machines", func() {
		play(func(c *cluster) {
			c.create("s", 3, byHand("d"))
			c.settle()
			names := []string{}
			for _, m := range c.machinesOf("s") {
				names = append(names, m.Name)
			}
			c.deploy("d", 3)
			c.settle()
			c.isRolled("d")
			Expect(c.setsOf("d")).To(HaveExactElements(HaveField("Name", "s")))
			for _, m := range c.machinesOf("s") {
				Expect(names).To(ContainElement(m.Name))
				Expect(m.Labels).To(HaveKey(mcm.DefaultMachineDeploymentUniqueLabelKey))
			}
		})
	})

	It("O11: leaves an orphan to an older one that selects it, and adopts it when that goes", func() {
		play(func(c *cluster) {
			c.deploy("z", 1, selecting("both"), func(d *api.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "z" })
			time.Sleep(2 * time.Second)
			c.deploy("a", 1, selecting("both"), func(d *api.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "a" })
			for i := range 4 {
				c.create(fmt.Sprint("s-", i), 0, byHand("both"))
			}
			c.create("s", 0, byHand("both"), func(s *mcm.MachineSet) { s.Labels = nil })
			c.settle()
			for i := range 4 {
				Expect(metav1.GetControllerOf(c.set(fmt.Sprint("s-", i)))).To(HaveValue(HaveField("Name", "z")))
			}
			var refuses atomic.Bool
			refuses.Store(true)
			c.OnWrite(func(w sim.Write) error {
				if refuses.Load() && w.User == name && w.Verb == "patch" && w.Name == "s" {
					return forbidden()
				}
				return nil
			})
			world.Patch(c.sets(), "s", `{"metadata":{"labels":{"name":"both"}}}`)
			time.Sleep(4 * time.Minute)
			Expect(metav1.GetControllerOf(c.set("s"))).To(BeNil())
			world.Delete(c.deployments(), "z")
			refuses.Store(false)
			time.Sleep(10 * time.Second)
			Expect(metav1.GetControllerOf(c.set("s"))).To(HaveValue(HaveField("Name", "a")))
			c.settle()
			Expect(c.setsOf("a")).To(HaveLen(2))
		})
	})

	It("O7: deletes no MachineSet that a user has taken out of it since it was looked at", func() {
		play(func(c *cluster) {
			c.deploy("d", 1, func(d *api.MachineDeployment) { d.Spec.RevisionHistoryLimit = new(int32) })
			c.settle()
			old := c.setsOf("d")[0].Name
			var deleting atomic.Bool
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == name && r.Verb == "delete" && r.Resource == "machinesets" {
					deleting.Store(true)
					before = time.Second
				}
				return before, 0
			})
			c.rollTo("d", "other")
			for begun := time.Now(); !deleting.Load() && time.Since(begun) < time.Hour; {
				time.Sleep(100 * time.Millisecond)
			}
			world.Patch(c.sets(), old, `{"metadata":{"labels":{"name":"mine"}}}`)
			c.settle()
			Expect(c.set(old)).To(And(HaveField("OwnerReferences", BeEmpty()), HaveField("DeletionTimestamp", BeNil())))
		})
	})

	It("O7: has none of the MachineSets of one that had its name before", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			process := c.Start(name, controller)
			d := c.deploy("d", 2)
			c.settle()
			former := c.setsOf("d")[0].Name
			process.Freeze()
			world.Delete(c.deployments(), "d")
			world.Patch(c.deployments(), "d", `{"metadata":{"finalizers":null}}`)
			d.ResourceVersion, d.UID = "", ""
			world.Create(c.deployments(), d)
			process.Thaw()
			c.settle()
			c.isRolled("d")
			Expect(c.setsOf("d")[0].Name).NotTo(Equal(former))
			Expect(world.List[mcm.MachineSet](c, setGVR)).To(HaveLen(1))
			Expect(world.List[mcm.Machine](c, machineGVR)).To(HaveLen(2))
		})
	})
})
