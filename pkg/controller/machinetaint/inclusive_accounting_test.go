// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("A reserve within replicas", func() {
	It("is not begun before it is known where it is counted, and one that was begun goes on", func() {
		storm.Bubble(suite, func() {
			var known atomic.Bool
			c := adopt(storm.NewWorld(sim.Options{Seed: 1, Resources: served}), machinetaint.Options{Settings: plan.Settings{
				Accounting: func(*api.MachineDeployment) api.Accounting {
					if known.Load() {
						return api.AccountingInclusive
					}
					return ""
				},
			}})
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
