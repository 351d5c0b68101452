// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// statusWrites returns the stock status that each write of a MachineDeployment from now on leaves behind, and whether it has failed.
func (c *cluster) statusWrites() *[]string {
	var all []string
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource != "machinedeployments" {
			return nil
		}
		d := world.Decoded[api.MachineDeployment](w.Object)
		status := stockStatusOf(d)
		for _, condition := range d.Status.Conditions {
			if condition.Type == mcmapi.MachineDeploymentReplicaFailure && condition.Status == mcmapi.ConditionTrue {
				status += ", failure: " + condition.Message
			}
		}
		all = append(all, status)
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

		It("reports no failure while machines that leave keep the reserve from growing below max, "+name, func() {
			play(func(c *cluster) {
				c.work(3)
				c.pool(3, bounds("1:5:2"), accounting)
				c.settle()
				all := c.statusWrites()
				serving, _ := c.names()
				c.cloud.set(func() {
					c.cloud.Drain = time.Hour
					c.cloud.sick = map[string]bool{serving[0]: true}
				})
				time.Sleep(20 * time.Minute)
				since := len(c.Writes())
				time.Sleep(20 * time.Minute)
				Expect(len(c.written(since))).To(BeNumerically("<=", 2), "machine-controller-manager syncs every ten minutes")
				Expect(c.terminating()).To(HaveLen(1))
				Expect(c.machines()).To(HaveLen(5))
				Expect(*all).NotTo(ContainElement(ContainSubstring("failure")))
			})
		})
	}
})
