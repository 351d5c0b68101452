// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// slowly makes the API server take that long before requests of a verb for a resource have an effect.
func (c *cluster) slowly(verb, resource string, delay time.Duration) {
	c.delays(map[string]time.Duration{verb + " " + resource: delay})
}

// delays has the API server take so long, by verb and resource, before requests of the process have an effect.
func (c *cluster) delays(delays map[string]time.Duration) {
	c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if delay, slow := delays[r.Verb+" "+r.Resource]; slow && r.User == evenkeel && r.Subresource == "" {
			return delay, time.Millisecond
		}
		return time.Millisecond, time.Millisecond
	})
}

// annotate Machines; nil removes the annotation.
func (c *cluster) annotate(machines []string, key string, value any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	Expect(err).NotTo(HaveOccurred())
	for _, name := range machines {
		_, err := c.stock.MachineV1alpha1().Machines(ns).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// bootLate leaves a pool without a reserve, and raises its replicas by one for a machine that goes on booting.
func (c *cluster) bootLate() (name string) {
	GinkgoHelper()
	c.want(0)
	c.settle()
	before, _ := c.names()
	c.scale(4)
	time.Sleep(3 * time.Second)
	serving, _ := c.names()
	booting := slices.DeleteFunc(serving, func(name string) bool { return slices.Contains(before, name) })
	Expect(booting).To(HaveLen(1))
	c.cloud.set(func() { c.cloud.late = map[string]bool{booting[0]: true} })
	return booting[0]
}

var _ = Describe("A machine that boots for workload", func() {
	It("enters the reserve only after the machine that serves in its place has left it (I2)", func() {
		story(func(c *cluster) {
			booting := c.bootLate()
			serving, _ := c.names()
			var refused atomic.Int32
			c.Admit(func(a sim.Admission) error {
				if a.Resource == "machines" && !slices.Contains(serving, a.Object.GetName()) && a.Object.GetAnnotations()[api.ReserveAnnotation] == "" && refused.Add(1) < 5 {
					return apierrors.NewServiceUnavailable("an admission webhook is down")
				}
				return nil
			})
			marked, most := map[string]bool{}, 0
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machines" {
					annotations, _, _ := unstructured.NestedStringMap(w.Object, "metadata", "annotations")
					delete(marked, w.Name)
					if annotations[api.ReserveAnnotation] != "" {
						marked[w.Name] = true
					}
					most = max(most, len(marked))
				}
				return nil
			})
			c.want(1)
			c.settle()
			Expect(refused.Load()).To(BeNumerically(">=", 5))
			_, reserve := c.names()
			Expect(reserve).To(Equal([]string{booting}))
			Expect(most).To(Equal(1), "machines in reserve at once")
		})
	})
})

var _ = Describe("A machine that pods run on", func() {
	DescribeTable("is not deleted by a request that was made while it was in reserve (I3)", func(ctx SpecContext, excess int, end string) {
		story(func(c *cluster) {
			c.slowly("delete", "machines", 8*time.Second)
			c.want(excess)
			time.Sleep(time.Second)
			c.work(2)
			c.scale(5)
			time.Sleep(3 * time.Second)
			busy := c.busy()
			Expect(busy).To(HaveLen(5))
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.deleted()).To(BeEmpty())
			Expect(c.numbers()).To(Equal(end))
		})
	},
		Entry("when one was to go", 1, "5+1 status 1/1 True Complete"),
		Entry("when all were to go", 0, "5+0 status 0/0"),
	)

	It("is not created to be deleted when the excess falls while replicas grow (I3)", func() {
		story(func(c *cluster) {
			var served []string
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machines" && w.Verb == "delete" && !marked(world.Decoded[mcmapi.Machine](w.Object)) {
					served = append(served, w.Name)
				}
				return nil
			})
			c.slowly("update", "machinesets", time.Second)
			c.work(2)
			c.patch(`{"spec":{"replicas":5,"excessReplicas":0}}`)
			c.settle()
			Expect(served).To(BeEmpty())
			Expect(c.numbers()).To(Equal("5+0 status 0/0"))
		})
	})

	It("is not deleted when replicas grow and fall again before a new reserve machine has its priority (I3)", func() {
		story(func(c *cluster) {
			busy, refusing := c.busy(), true
			c.Admit(func(a sim.Admission) error {
				if refusing && a.Verb == "patch" && a.Resource == "machines" {
					return apierrors.NewServiceUnavailable("an admission webhook is down")
				}
				return nil
			})
			c.scale(4)
			time.Sleep(5 * time.Minute)
			Expect(c.machines()).To(HaveLen(6))
			c.scale(3)
			time.Sleep(time.Minute)
			Expect(c.busy()).To(Equal(busy))
			refusing = false
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
		})
	})

	It("does not enter the reserve because its pod is not shown yet (I2)", func() {
		story(func(c *cluster) {
			serving, reserve := c.names()
			c.cloud.set(func() { c.cloud.sick = map[string]bool{serving[0]: true} })
			time.Sleep(3 * time.Second)
			c.Hold("pods", evenkeel)
			c.work(1)
			time.Sleep(3 * time.Second)
			c.cloud.set(func() { c.cloud.sick = nil })
			time.Sleep(time.Minute)
			Expect(c.busy()).To(HaveLen(4))
			Expect(reserve).To(ContainElement(BeElementOf(c.busy())), "one of them stood in")
			_, held := c.split()
			Expect(held).NotTo(ContainElement(BeElementOf(c.busy())))
			c.Release("pods", evenkeel)
			time.Sleep(time.Minute)
			Expect(c.numbers()).To(ContainSubstring("SurplusServing"))
		})
	})

	It("is not deleted by a request that was under way when it left the reserve (I3)", func() {
		story(func(c *cluster) {
			moved := c.countMoves()
			c.delays(map[string]time.Duration{"delete machines": 8 * time.Second, "patch machines": 3 * time.Second})
			c.want(0)
			time.Sleep(9500 * time.Millisecond)
			c.work(2)
			c.scale(5)
			c.settle()
			Expect(*moved).To(BeZero())
			Expect(c.numbers()).To(Equal("5+0 status 0/0"))
		})
	})
})

// replaceWhole removes excess and annotations, as kubectl replace does with a manifest that has neither. Machines that were named for
// lower replicas stay named: without that any machine may go for them.
func (c *cluster) replaceWhole() {
	GinkgoHelper()
	annotations := map[string]any{}
	for key := range c.deployment().Annotations {
		if key != machineutils.TriggerDeletionByMCM {
			annotations[key] = nil
		}
	}
	text, err := json.Marshal(annotations)
	Expect(err).NotTo(HaveOccurred())
	c.patch(`{"spec":{"excessReplicas":null,"reserveWitness":null},"metadata":{"annotations":%s}}`, text)
}

// halfway keeps MachineSets of a class from asking for more than so many machines. More may ask for others from then on.
func (c *cluster) halfway(class string, most int32) (ask func(most int32)) {
	var limit atomic.Int32
	limit.Store(most)
	c.Admit(func(a sim.Admission) error {
		if a.Resource != "machinesets" || a.Subresource != "" {
			return nil
		}
		if set := world.Decoded[mcmapi.MachineSet](a.Object.Object); set.Spec.Template.Spec.Class.Name == class && set.Spec.Replicas > limit.Load() {
			return apierrors.NewServiceUnavailable("an admission webhook is down")
		}
		return nil
	})
	return limit.Store
}

var _ = Describe("A machine that pods run on", func() {
	It("is not deleted before those in reserve where a MachineDeployment is replaced whole (I3)", func() {
		story(func(c *cluster) {
			busy := c.busy()
			c.slowly("patch", "machines", 2*time.Second)
			c.replaceWhole()
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.numbers()).To(Equal("3+0 status 0/0"))
		})
	})

	It("is not deleted where more serve than replicas and the MachineDeployment is replaced whole for a moment (I3)", func() {
		story(func(c *cluster) {
			c.overstay()
			busy := c.busy()
			c.replaceWhole()
			time.Sleep(5 * time.Second)
			c.want(2)
			time.Sleep(machinetaint.DefaultSurplusPatience - time.Minute)
			Expect(c.busy()).To(Equal(busy))
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
		})
	})

	DescribeTable("is not deleted where the excess of a MachineDeployment that was replaced whole is reduced by a write that fails (I3)", func(ctx SpecContext, effect sim.Moment, answer error) {
		play(func(c *cluster) {
			c.work(3)
			c.pool(3, inclusive, excess(2))
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
			busy, failed, begun := c.busy(), false, time.Now()
			// at is called for each write of the excess. At first, the record of it cannot be restored.
			at := func(moment sim.Moment, r sim.Request, object map[string]any) error {
				replicas, _, _ := unstructured.NestedInt64(object, "spec", "replicas")
				switch {
				case failed || r.User != evenkeel || r.Verb != "patch" || r.Resource != "machinedeployments":
				case replicas == 5 && moment == sim.Before && time.Since(begun) < 10*time.Second:
					return apierrors.NewForbidden(mcmapi.Resource(r.Resource), r.Name, errors.New("not yet"))
				case replicas < 5 && moment == effect:
					failed = true
					return answer
				}
				return nil
			}
			c.Admit(func(a sim.Admission) error { return at(sim.Before, a.Request, a.Object.Object) })
			c.AfterWrite(func(w sim.Write) error { return at(sim.After, w.Request, w.Object) })
			c.Lag("machinedeployments", sim.Constantly(3*time.Second), evenkeel)
			c.replaceWhole()
			c.settle()
			Expect(failed).To(BeTrue())
			Expect(c.busy()).To(Equal(busy))
			Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"))
			Expect(c.numbers()).To(Equal("3+0 status 0/0"))
		})
	},
		Entry("after its effect", sim.After, errors.New("the connection breaks")),
		Entry("before its effect", sim.Before, errors.New("the connection breaks")),
		Entry("because it is denied", sim.Before, apierrors.NewForbidden(mcmapi.Resource("machinedeployments"), "pool", errors.New("not now"))),
	)

	DescribeTable("is not deleted in a rollout for the reserve that a new process does not know of (I3)", func(ctx SpecContext, known bool, stalled int32, again int, end string) {
		story(func(c *cluster) {
			ask := c.halfway("other", 3)
			c.edit()
			c.settle()
			Expect(c.sets()).To(HaveLen(2))
			Expect(c.midway()).To(Equal("3+2 Complete"), "all that serve are new, all in reserve are old")
			busy := c.busy()
			if !known {
				c.annotate(busy, api.ReserveStateAnnotation, nil)
			}
			c.process.Crash()
			c.replaceWhole()
			ask(stalled)
			c.process.Restart()
			for range 60 { // machine-controller-manager looks at the new MachineSet over and over, while the reserve leaves and when it has
				time.Sleep(500 * time.Millisecond)
				c.annotate(busy[:1], "touched", time.Now())
			}
			ask(100)
			c.want(again)
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.numbers()).To(Equal(end))
			Expect(c.sets()).To(HaveLen(1))
		})
	},
		Entry("though it is wanted again", true, int32(100), 2, "3+2 status 2/2 True Complete"),
		Entry("though machines say nothing of how they left it", false, int32(100), 0, "3+0 status 0/0"),
		Entry("when it has gone, and the new MachineSet has yet to grow", true, int32(2), 0, "3+0 status 0/0"),
	)
})
