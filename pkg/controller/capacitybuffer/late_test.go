// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// behind shows the controller of a cluster at rest changes of a kind five minutes late.
func behind(kind string, story func(*cluster)) {
	storm.Bubble(suite, func() {
		c := still(storm.NewApart(sim.Options{Seed: 1, Resources: served})) // no other controller writes the same objects
		defer c.End()
		c.pool("a", 9)
		c.deploy("web", 10)
		c.create(percent("web", "web", 20))
		c.Start("buffers", controller)
		Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
		c.Lag(kind, sim.Constantly(5*time.Minute), "buffers")
		story(c)
		Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
	})
}

var _ = Describe("Between a write of the controller and its event", func() {
	It("the next Reserve is decided on that write", func() {
		behind("reserves", func(c *cluster) {
			for _, machines := range []int32{2, 4, 3} { // two chunks fill a machine
				c.scale("web", 10*machines)
				time.Sleep(10 * time.Second)
				Expect(world.Stored[autoscaling.Reserve](c, reserveGVR, Namespace, plan.ReserveName("a")).Spec.Replicas).To(Equal(machines))
			}
		})
	})

	It("the next status is decided on that write", func() {
		behind("capacitybuffers", func(c *cluster) {
			for chunks, replicas := range []int32{0, 5, 10, 15} {
				c.scale("web", replicas)
				time.Sleep(10 * time.Second)
				Expect(Standing(c.buffer("web"))).To(HavePrefix(fmt.Sprint(chunks, " ")))
			}
		})
	})

	It("no Reserve is deleted that a user has made his own meanwhile", func() {
		behind("reserves", func(c *cluster) {
			reserves := c.ours.AutoscalingV1alpha1().Reserves(Namespace)
			world.Change(reserves, plan.ReserveName("a"), func(r *autoscaling.Reserve) { r.Labels = nil })
			c.remove("web")
			time.Sleep(time.Minute)
			Expect(c.Objects(reserveGVR)).To(HaveLen(1))
			time.Sleep(10 * time.Minute)
			Expect(c.Objects(reserveGVR)).To(HaveLen(1))
		})
	})
})
