// SPDX-License-Identifier: Apache-2.0

package reserves_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// behind has a Reserve for a MachineDeployment with three machines for workload, and then shows the
// controller changes of a kind five minutes late.
func behind(kind string, story func(*cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		c.pool("a", 3, Bounds("1:9"))
		c.create(Wish("shop", Replicas(4)))
		c.Start("reserves", controller)
		Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
		Expect(c.requested()).To(Equal("a: shop=4"))
		c.Lag(kind, sim.Constantly(5*time.Minute), "reserves")
		story(c)
		Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
	})
}

// bounded changes the bounds of the MachineDeployment.
func (c *cluster) bounded(text string) {
	GinkgoHelper()
	c.changePool("a", Annotated(machine.BoundsAnnotation, text))
}

var _ = Describe("Between a write of the controller and its event", func() {
	It("the next request is decided on that write", func() {
		behind("machinedeployments", func(c *cluster) {
			for _, n := range []int32{2, 3, 5} {
				c.change("shop", Replicas(n))
				time.Sleep(5 * time.Second)
				Expect(c.requested()).To(Equal(fmt.Sprintf("a: shop=%d", n)))
			}
		})
	})

	It("the next status is decided on that write", func() {
		behind("reserves", func(c *cluster) {
			for _, room := range []int{2, 1, 3} {
				c.bounded(fmt.Sprintf("1:%d", 3+room))
				time.Sleep(5 * time.Second)
				Expect(c.reserve("shop").Status.Pools).To(HaveExactElements(HaveField("DesiredReplicas", BeEquivalentTo(room))))
			}
		})
	})

	It("nothing is requested by what another client has changed meanwhile", func() {
		behind("machinedeployments", func(c *cluster) {
			c.bounded("1:4")
			c.change("shop", Replicas(5))
			time.Sleep(time.Minute)
			Expect(c.requested()).To(Equal("a: shop=4"), "it is not known yet that there is room for one")
			time.Sleep(5 * time.Minute)
			Expect(c.requested()).To(Equal("a: shop=1"))
		})
	})
})
