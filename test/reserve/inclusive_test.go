// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// inclusive has replicas include the reserve.
func inclusive(d *api.MachineDeployment) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[api.AccountingAnnotation] = string(api.AccountingInclusive)
}

func (c *cluster) account(a api.Accounting) {
	GinkgoHelper()
	c.patch(`{"metadata":{"annotations":{%q:%q}}}`, api.AccountingAnnotation, a)
}

// totals are spec.replicas, the machines for workload, and the applied excess with what of it is counted.
func (c *cluster) totals() string {
	GinkgoHelper()
	d := c.deployment()
	a := pool.AppliedOf(d, d.Spec.Replicas)
	return fmt.Sprintf("%d = %d + %d of %d", d.Spec.Replicas, pool.Workload(d, d.Spec.Replicas), a.Counted, a.Excess)
}

// withStockFields are kinds where MachineDeployments keep only the fields that machine-controller-manager's own types have.
func withStockFields(kinds []sim.Resource) []sim.Resource {
	kinds = slices.Clone(kinds)
	for i := range kinds {
		if kinds[i].Kind == "MachineDeployment" {
			kinds[i].Known = &sim.Known{Spec: fieldsOf[mcmapi.MachineDeploymentSpec](), Status: fieldsOf[mcmapi.MachineDeploymentStatus]()}
		}
	}
	return kinds
}

func fieldsOf[T any]() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func condition(d *api.MachineDeployment) mcmapi.MachineDeploymentCondition {
	GinkgoHelper()
	i := slices.IndexFunc(d.Status.Conditions, func(c mcmapi.MachineDeploymentCondition) bool { return c.Type == api.ReserveReady })
	Expect(i).NotTo(Equal(-1))
	return d.Status.Conditions[i]
}

// inclusiveStory plays on a pool of five replicas: three busy machines and two in reserve.
func inclusiveStory(body func(c *cluster)) {
	play(func(c *cluster) {
		c.work(3)
		c.pool(3, excess(2), inclusive)
		c.settle()
		Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
		Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
		serving, _ := c.names()
		Expect(c.busy()).To(Equal(serving))
		body(c)
	})
}

// born counts machines that were made and those that were deleted since a number of writes.
func (c *cluster) born(since int) (made, deleted int) {
	for _, w := range c.Writes()[since:] {
		switch {
		case w.Resource != "machines" || w.NoOp():
		case w.Effect == sim.Added:
			made++
		case w.Verb == "delete" && w.Effect != sim.Deleted:
			deleted++
		}
	}
	return made, deleted
}

var _ = Describe("A reserve within replicas", func() {
	It("counts each machine when its Node registers, and then nothing is written", func() {
		inclusiveStory(func(c *cluster) {
			c.want(4)
			time.Sleep(10 * time.Second)
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 4"), "the new ones boot")
			c.settle()
			Expect(c.totals()).To(Equal("7 = 3 + 4 of 4"))
			Expect(c.numbers()).To(Equal("3+4 status 4/4 True Complete"))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.written(since)).To(BeEmpty())
		})
	})

	It("is reported once where the API server drops the numbers of machines, as with Gardener's CustomResourceDefinition", func() {
		playWith(sim.Options{Seed: 1, Resources: withStockFields(served)}, func(c *cluster) {
			c.work(3)
			c.pool(3, bounds("1:9:2"), inclusive)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
			Expect(c.deployment().Status.ExcessReplicas).To(BeZero())
			since := len(c.Writes())
			for i := range 20 {
				for _, m := range c.machines() {
					patch := fmt.Appendf(nil, `{"metadata":{"labels":{"example.org/value":"%d"}}}`, i)
					_, err := c.stock.MachineV1alpha1().Machines(ns).Patch(context.Background(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
					Expect(err).NotTo(HaveOccurred())
				}
				time.Sleep(time.Second)
			}
			Expect(c.written(since)).NotTo(ContainElement(HavePrefix("patch machinedeployments")))
			c.patch(`{"metadata":{"annotations":{%q:"1:9:3"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.totals()).To(Equal("6 = 3 + 3 of 3"))
			Expect(condition(c.deployment()).Message).To(ContainSubstring("spec.replicas includes 3 of them"))
		})
	})

	It("does not count machines that cannot be made", func() {
		inclusiveStory(func(c *cluster) {
			c.cloud.set(func() { c.cloud.out = true })
			c.want(4)
			time.Sleep(10 * time.Minute)
			Expect(c.totals()).To(HavePrefix("5 = 3 + 2 of "))
			c.cloud.set(func() { c.cloud.out = false })
			c.settle()
			Expect(c.totals()).To(Equal("7 = 3 + 4 of 4"))
		})
	})

	It("serves at once when replicas grow, and is made up for by the machine that they ask for", func() {
		inclusiveStory(func(c *cluster) {
			c.work(1)
			c.scale(6)
			time.Sleep(100 * time.Millisecond)
			serving, _ := c.names()
			Expect(serving).To(HaveLen(4))
			c.settle()
			Expect(c.totals()).To(Equal("6 = 4 + 2 of 2"))
			Expect(c.numbers()).To(Equal("4+2 status 2/2 True Complete"))
			Expect(c.busy()).To(HaveLen(4))
		})
	})

	It("leaves replicas with the excess, and no machine that serves goes", func() {
		inclusiveStory(func(c *cluster) {
			busy, since := c.busy(), len(c.Writes())
			c.want(1)
			c.settle()
			Expect(c.totals()).To(Equal("4 = 3 + 1 of 1"))
			c.want(0)
			c.settle()
			Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"))
			Expect(c.numbers()).To(Equal("3+0 status 0/0"))
			Expect(c.busy()).To(Equal(busy))
			made, deleted := c.born(since)
			Expect([]int{made, deleted}).To(Equal([]int{0, 2}))
		})
	})

	It("serves as a whole when all of it is released in one write, and is made up for", func() {
		inclusiveStory(func(c *cluster) {
			c.work(2)
			d, before := c.deployment(), len(c.Writes())
			pool.Release(d, 2)
			record := "null"
			if text, recorded := d.Annotations[api.AppliedExcessAnnotation]; recorded {
				record = fmt.Sprintf("%q", text)
			}
			c.patch(`{"metadata":{"annotations":{%q:%s}}}`, api.AppliedExcessAnnotation, record)
			time.Sleep(100 * time.Millisecond)
			serving, _ := c.names()
			Expect(serving).To(HaveLen(5))
			c.settle()
			Expect(c.totals()).To(Equal("7 = 5 + 2 of 2"))
			Expect(c.busy()).To(ConsistOf(serving))
			made, deleted := c.born(before)
			Expect([]int{made, deleted}).To(Equal([]int{2, 0}))
			c.want(0)
			c.settle()
			Expect(c.deployment().Annotations).NotTo(HaveKey(api.AppliedExcessAnnotation))
		})
	})

	It("rolls with the rest, and replicas stay", func() {
		inclusiveStory(func(c *cluster) {
			c.patch(`{"spec":{"template":{"spec":{"class":{"name":"next"}}}}}`)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			for _, m := range c.machines() {
				Expect(m.Spec.Class.Name).To(Equal("next"))
			}
		})
	})
})

var _ = Describe("A reserve within replicas", func() {
	It("is not begun before it is known where it is counted, and one that was begun goes on", func() {
		storm.Bubble(suite, func() {
			var known atomic.Bool
			c := adopt(storm.NewWorld(sim.Options{Seed: 1, Resources: served}), machinetaint.Settings{
				Accounting: func(*api.MachineDeployment) api.Accounting {
					if known.Load() {
						return api.AccountingInclusive
					}
					return ""
				},
			})
			defer c.End()
			c.work(3)
			c.pool(3, excess(2))
			c.settle()
			Expect(c.machines()).To(HaveLen(3))
			known.Store(true)
			c.want(1)
			c.settle()
			Expect(c.totals()).To(Equal("4 = 3 + 1 of 1"))
			known.Store(false)
			c.want(2)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
		})
	})

	It("moves into replicas and out of them in one write, without a machine made or deleted", func() {
		story(func(c *cluster) {
			for range 2 {
				since := len(c.Writes())
				c.account(api.AccountingInclusive)
				c.settle()
				Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
				c.account(api.AccountingAdditive)
				c.settle()
				Expect(c.totals()).To(Equal("3 = 3 + 0 of 2"))
				made, deleted := c.born(since)
				Expect([]int{made, deleted}).To(Equal([]int{0, 0}))
				Expect(c.written(since)).NotTo(ContainElement(Or(ContainSubstring("machinesets"), ContainSubstring("machines "))))
			}
		})
	})

	It("is recovered where the record of it is lost, also by a process that never saw it", func() {
		inclusiveStory(func(c *cluster) {
			for _, restarted := range []bool{false, true} {
				busy, since := c.busy(), len(c.Writes())
				if restarted {
					c.process.Crash()
				}
				c.patch(`{"metadata":{"annotations":{%q:null}}}`, api.AppliedExcessAnnotation)
				if restarted {
					time.Sleep(time.Minute)
					c.process.CrashFor(0)
				}
				c.settle()
				Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
				Expect(c.busy()).To(Equal(busy))
				made, deleted := c.born(since)
				Expect([]int{made, deleted}).To(Equal([]int{0, 0}))
			}
		})
	})

	It("stays where it is while the annotation is invalid, and a condition explains what to write", func() {
		inclusiveStory(func(c *cluster) {
			since := len(c.Writes())
			c.patch(`{"metadata":{"annotations":{%q:"inclusive"}}}`, api.AccountingAnnotation)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
			made, deleted := c.born(since)
			Expect([]int{made, deleted}).To(Equal([]int{0, 0}))
			message := ""
			for _, condition := range c.deployment().Status.Conditions {
				if condition.Type == api.ReserveReady {
					message = condition.Reason + ": " + condition.Message
				}
			}
			Expect(message).To(HavePrefix(`AnnotationInvalid: accounting "inclusive": write Additive or Inclusive`))
		})
	})

	It("is not missed by a client that writes what it read: its own growth is what it wrote", func() {
		inclusiveStory(func(c *cluster) {
			d, err := c.user.MachineV1alpha1().MachineDeployments(ns).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Count(d.Annotations[api.AppliedExcessAnnotation], "counted=2,replicas=5")).To(Equal(1))
			_, err = c.user.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), "pool", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.totals()).To(Equal("9 = 7 + 2 of 2"))
		})
	})
})
