// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/world"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// statusWrites returns the stock status that each write of a MachineDeployment leaves behind from now on.
func (c *cluster) statusWrites() *[]string {
	var all []string
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource == "machinedeployments" {
			all = append(all, stockStatusOf(world.Decoded[api.MachineDeployment](w.Object)))
		}
		return nil
	})
	return &all
}

var _ = Describe("Each stock status that is stored (V12)", func() {
	for name, accounting := range map[string]func(*api.MachineDeployment){"additive": func(*api.MachineDeployment) {}, "inclusive": inclusive} {
		It("has as many machines as before while reserve machines are created, "+name, func() {
			play(func(c *cluster) {
				c.work(3)
				c.pool(3, excess(2), accounting)
				c.settle()
				all := c.statusWrites()
				c.want(4)
				time.Sleep(bootTime / 2)
				Expect(c.machines()).To(HaveLen(7))
				Expect(*all).To(HaveEach(allFive))
			})
		})

		It("has no fewer machines than before while a rollout replaces the reserve, "+name, func() {
			play(func(c *cluster) {
				c.work(3)
				c.pool(3, excess(2), accounting)
				c.settle()
				all := c.statusWrites()
				c.edit()
				c.settle()
				Expect(*all).To(HaveEach(MatchRegexp(`^[56]: `)))
			})
		})
	}
})
