// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("A crash between any two writes", func() {
	// crash kills the process in a story in which no more pods move than those on machines that are named.
	crash := func(named int, story func(c *cluster), change ...func(*api.MachineDeployment)) {
		GinkgoHelper()
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 1, Resources: served}, Apart: true,
			Story: func(w *storm.World) {
				c := adoptAs(w, "before", machinetaint.Settings{})
				c.Latency(2 * time.Millisecond)
				c.work(3)
				c.pool(3, append(change, excess(2))...)
				c.settle()
				Expect(c.process.Stop()).To(Succeed())
				c.process = w.Start(evenkeel, manager.Program(machinetaint.Settings{}))
				moved := c.countMoves()
				story(c)
				c.settle()
				Expect(*moved).To(Equal(named))
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				numbers, _, _ := strings.Cut(c.numbers(), " ") // which machines there are depends on their random names
				return fmt.Sprintf("%s: %s", c.totals(), numbers)
			},
		}, evenkeel)).To(Succeed())
	}

	It("evicts no pod when an excess that was to be removed is requested again while machine-controller-manager begins to delete it", func() {
		shrunk := 0
		for _, after := range []time.Duration{96 * time.Millisecond, 98 * time.Millisecond} {
			crash(0, func(c *cluster) {
				busy := c.busy()
				c.AfterWrite(func(w sim.Write) error {
					if n, _, _ := unstructured.NestedInt64(w.Object, "spec", "replicas"); w.Resource == "machinesets" && n < 5 {
						shrunk++
					}
					return nil
				})
				c.want(0)
				time.Sleep(after) // machine-controller-manager waits for 100 ms before it acts
				c.want(2)
				c.settle()
				Expect(c.busy()).To(Equal(busy))
			})
		}
		Expect(shrunk).To(BeNumerically(">", 0), "something is at stake")
	})

	It("ends as without it when replicas that include the reserve grow, shrink by name, and are counted anew", func() {
		crash(1, func(c *cluster) {
			c.work(1)
			c.scale(6)
			time.Sleep(time.Minute)
			c.name(5, c.busy()[0])
			time.Sleep(time.Minute)
			c.account(api.AccountingAdditive)
		}, inclusive)
	})

	It("drains nothing when replicas that include the reserve are lowered and no machine is named", func() {
		crash(0, func(c *cluster) {
			busy := c.busy()
			c.scale(3)
			time.Sleep(30 * time.Second)
			Expect(c.busy()).To(Equal(busy)) // the end is that the reserve is back
		}, inclusive)
	})

	It("ends as without it when replicas grow, shrink by name, and the excess changes", func() {
		crash(1, func(c *cluster) {
			c.work(1)
			c.scale(4)
			time.Sleep(time.Minute)
			c.name(3, c.busy()[0])
			time.Sleep(time.Minute)
			c.want(1)
		})
	})
})
