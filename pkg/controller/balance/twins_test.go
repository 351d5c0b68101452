// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("Two instances", func() {
	It("end a move that the first was killed in the middle of, also where its last write is still under way", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			c.deployAll([]Change{Continuous}, 5, 2, 2)
			for i := range 9 {
				c.run(fmt.Sprint("p", i))
			}
			time.Sleep(5 * time.Minute)
			first := c.Start("balance-1", controller())
			random := rand.New(rand.NewPCG(seed, 3))
			writes, after := 0, 1+random.IntN(8)
			handed := make(chan struct{})
			c.AfterWrite(func(w sim.Write) error {
				if w.User == "balance-1" && w.Resource == "machinedeployments" && !w.NoOp() {
					if writes++; writes == after {
						first.Crash()
						close(handed)
					}
				}
				return nil
			})
			<-handed
			c.Start("balance-2", controller())
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("3/3/3"))
			Expect(c.ready(false, abc...)).To(Equal("3/3/3"))
			Expect(len(c.moved)).To(Equal(2))
			for pod, n := range c.moved {
				Expect(n).To(Equal(1), pod)
			}
		})
	})

	It("that both work, since none was elected, move each replica only once", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 4))
			c.deployAll([]Change{Continuous}, 6, 3, 0)
			for i, user := range []string{"balance-1", "balance-2"} {
				c.Lag("machinedeployments", sim.Uniformly(seed+uint64(i), 0, 3*time.Second), user)
				c.Lag("machines", sim.Uniformly(seed+uint64(9+i), 0, 3*time.Second), user)
				c.Start(user, controller())
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			}
			c.scale("b", c.size("b")+6)
			c.settle()
			Expect(Sum(c.sizes(abc...))).To(BeNumerically(">=", 15))
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("5/5/5"))
			Expect(c.ready(false, abc...)).To(Equal("5/5/5"))
		})
	})
})
