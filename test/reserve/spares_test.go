// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"fmt"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// stockStatus is what machine-controller-manager's users read, Gardener among them: replicas, updated, available and unavailable
// ones, the failed machines, and whether there is enough.
func (c *cluster) stockStatus() string {
	GinkgoHelper()
	return stockStatusOf(c.deployment())
}

func stockStatusOf(d *api.MachineDeployment) string {
	s := d.Status
	enough := mcmapi.ConditionUnknown
	for _, condition := range s.Conditions {
		if condition.Type == mcmapi.MachineDeploymentAvailable {
			enough = condition.Status
		}
	}
	return fmt.Sprintf("%d: %d updated, %d available, %d not, %d failed, %s", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.UnavailableReplicas, len(s.FailedMachines), enough)
}

// allFive is the stock status of a pool of three machines for workload and two in reserve, at rest.
const allFive = "5: 5 updated, 5 available, 0 not, 0 failed, True"

// stays looks at the stock status each second.
func (c *cluster) stays(want string, d time.Duration) {
	GinkgoHelper()
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(time.Second) {
		ExpectWithOffset(1, c.stockStatus()).To(Equal(want), "after %v", time.Since(begin))
	}
}

var _ = Describe("The stock status (V12)", func() {
	for name, accounting := range map[string]func(*api.MachineDeployment){"additive": func(*api.MachineDeployment) {}, "inclusive": inclusive} {
		begin := func(body func(c *cluster)) {
			play(func(c *cluster) {
				c.work(3)
				c.pool(3, excess(2), accounting)
				c.settle()
				Expect(c.stockStatus()).To(Equal(allFive))
				body(c)
			})
		}

		It("leaves out reserve machines until they are ready, "+name, func() {
			begin(func(c *cluster) {
				c.want(4)
				time.Sleep(time.Second)
				since := len(c.Writes())
				c.stays(allFive, bootTime-5*time.Second)
				Expect(c.machines()).To(HaveLen(7))
				Expect(c.written(since)).NotTo(ContainElement(ContainSubstring("update machinedeployments")), "machine-controller-manager finds its own writes")
				c.settle()
				Expect(c.stockStatus()).To(Equal("7: 7 updated, 7 available, 0 not, 0 failed, True"))
			})
		})

		It("leaves out reserve machines that cannot be made, "+name, func() {
			begin(func(c *cluster) {
				c.cloud.set(func() { c.cloud.out = true })
				c.want(4)
				time.Sleep(time.Second)
				seen := map[string]bool{}
				for begin := time.Now(); time.Since(begin) < 10*time.Minute; time.Sleep(time.Second) {
					seen[c.stockStatus()] = true
				}
				Expect(seen).To(HaveKey(allFive))
				Expect(seen).To(HaveKey(HavePrefix("7: 7")), "those that are given up count until they are gone")
				for status := range seen {
					Expect(status).To(MatchRegexp(`^(5: 5|6: 6|7: 7) updated, 5 available, 0 not, 0 failed, True$`))
				}
				c.cloud.set(func() { c.cloud.out = false })
				c.settle()
				Expect(c.stockStatus()).To(Equal("7: 7 updated, 7 available, 0 not, 0 failed, True"))
			})
		})

		It("counts machines for workload that boot beside them, "+name, func() {
			begin(func(c *cluster) {
				c.work(4)
				c.scale(int(c.deployment().Spec.Replicas) + 4)
				time.Sleep(bootTime / 2)
				Expect(c.stockStatus()).To(Equal("7: 7 updated, 5 available, 2 not, 0 failed, False"))
				c.settle()
				Expect(c.stockStatus()).To(Equal("9: 9 updated, 9 available, 0 not, 0 failed, True"))
			})
		})
	}

	It("counts them where nothing has replicas, as in a cluster that hibernates", func() {
		play(func(c *cluster) {
			c.pool(0, excess(2))
			time.Sleep(bootTime / 2)
			Expect(c.stockStatus()).To(HavePrefix("2: 2 updated, 0 available"))
			c.settle()
			Expect(c.stockStatus()).To(Equal("2: 2 updated, 2 available, 0 not, 0 failed, True"))
		})
	})
})

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
