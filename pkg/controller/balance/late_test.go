// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The controller", func() {
	It("decides on no cache that is older than its own writes", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Lag("machinedeployments", sim.Constantly(7*time.Second), "balance")
			tried := 0
			c.OnWrite(func(w sim.Write) error {
				if w.User == "balance" && w.Resource != "events" {
					tried++
				}
				return nil
			})
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 8)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
			Expect(tried).To(Equal(c.wrote(0)), "a write that conflicts, or changes nothing, was decided on something old")
		})
	})

	It("loses nothing that is asked for while its cache is behind", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			c.Lag("machinedeployments", sim.Constantly(5*time.Second), "balance")
			c.scale("a", 8)
			time.Sleep(13 * time.Second)
			Expect(c.annotations(v1alpha1.MoveAnnotation, "b")).To(ContainSubstring("taken"))
			Expect(c.sizes(abc...)).To(Equal("8/4/4"), "a is to lose 4 in two seconds")
			c.scale("a", 11)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("5/5/5"))
		})
	})

	It("ends also where it reads late", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 6, 2, 1)
			c.Lag("machinedeployments", sim.Constantly(7*time.Second), "balance")
			c.Lag("machines", sim.Constantly(3*time.Second), "balance")
			c.Start("balance", controller())
			c.settle()
			c.scale("a", c.size("a")+3)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
		})
	})
})
