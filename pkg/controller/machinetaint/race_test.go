// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// replaceWhole removes excess and annotations, as kubectl replace does with a manifest that has neither.
func (c *cluster) replaceWhole() {
	GinkgoHelper()
	c.patch(`{"spec":{"excessReplicas":null},"metadata":{"annotations":null}}`)
}

// slowly makes the API server take that long before requests of a verb for a resource have an effect.
func (c *cluster) slowly(verb, resource string, delay time.Duration) {
	c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.Verb == verb && r.Resource == resource {
			return delay, time.Millisecond
		}
		return time.Millisecond, time.Millisecond
	})
}

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
})
