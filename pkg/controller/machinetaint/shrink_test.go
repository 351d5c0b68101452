// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// terminating are the machines that are being deleted.
func (c *cluster) terminating() (names []string) {
	for _, m := range c.machines() {
		if m.DeletionTimestamp != nil {
			names = append(names, m.Name)
		}
	}
	return names
}

var _ = Describe("A reserve", func() {
	It("shrinks without evictions though its field is removed at any moment meanwhile", func() {
		for _, after := range []time.Duration{0, 4 * time.Millisecond, 8 * time.Millisecond, 16 * time.Millisecond, 40 * time.Millisecond, 5 * time.Second} {
			story(func(c *cluster) {
				serving := c.busy()
				c.want(1)
				time.Sleep(after)
				c.typed(func(*mcmapi.MachineDeployment) {})
				c.settle()
				Expect(c.deployment().Spec.ExcessReplicas).To(HaveValue(Or(BeEquivalentTo(1), BeEquivalentTo(2))), "what it said last, as far as was seen")
				Expect(c.numbers()).To(HavePrefix("3+"))
				Expect(c.busy()).To(Equal(serving))
			})
		}
	})

	It("lowers replicas at once, although an outdated annotation allows more", func() {
		story(func(c *cluster) {
			c.patch(`{"metadata":{"annotations":{%q:"3"}}}`, api.AppliedReplicasAnnotation)
			c.settle()
			c.scale(2)
			c.settle()
			Expect(c.numbers()).To(Equal("2+2 status 2/2 True Complete"))
			Expect(c.deployment().Status.Replicas).To(BeEquivalentTo(4))
		})
	})

	It("is not what goes when replicas shrink, unless it was named", func() {
		story(func(c *cluster) {
			serving, reserve := c.names()
			c.scale(2)
			c.settle()
			Expect(c.numbers()).To(Equal("2+2 status 2/2 True Complete"))
			_, left := c.names()
			Expect(left).To(Equal(reserve))

			left, _ = c.names()
			c.name(1, left[1])
			c.settle()
			Expect(c.numbers()).To(Equal("1+2 status 2/2 True Complete"))
			now, _ := c.names()
			Expect(now).To(Equal(left[:1]))
			Expect(serving).To(ContainElement(left[0]))
		})
	})

	It("has replicas restored for a machine that is named while it goes, though its name is forgotten at once, and the machine is gone or not", func() {
		for _, gone := range []bool{false, true} {
			for _, accounting := range []api.Accounting{api.AccountingAdditive, api.AccountingInclusive} {
				story(func(c *cluster) {
					busy := c.busy()
					c.account(accounting)
					c.settle()
					if gone {
						c.Lag("machines", func() time.Duration { return time.Second }, evenkeel)
					}
					c.want(0)
					var going []string
					for range 1000 {
						time.Sleep(10 * time.Millisecond)
						if going = c.terminating(); len(going) == 2 {
							break
						}
					}
					Expect(going).To(HaveLen(2))
					if gone {
						c.Hold("machines", evenkeel)
					}
					c.Hold("machinedeployments", evenkeel)
					c.name(2, going[0])
					c.name(1, going[1])
					c.patch(`{"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":null}}}`)
					if gone {
						time.Sleep(2 * drainTime)
						Expect(c.machines()).To(HaveLen(3))
					}
					c.Release("machinedeployments", evenkeel)
					time.Sleep(10 * time.Millisecond) // machine-controller-manager waits for 100 ms before it acts
					c.Release("machines", evenkeel)
					c.settle()
					Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"))
					Expect(c.busy()).To(Equal(busy))
					c.scale(2)
					c.settle()
					Expect(c.totals()).To(Equal("2 = 2 + 0 of 0"), "what was restored once is not restored again")
				})
			}
		}
	})

	It("gives replicas back for a machine of its own that was named, once", func() {
		story(func(c *cluster) {
			_, reserve := c.names()
			c.name(2, reserve[0])
			c.settle()
			Expect(c.deployment().Spec.Replicas).To(BeEquivalentTo(3))
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			_, now := c.names()
			Expect(now).NotTo(ContainElement(reserve[0]))
			Expect(c.deployment().Annotations).NotTo(HaveKey(api.ReturnedAnnotation))
		})
	})
})
