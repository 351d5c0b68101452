// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("Wherever the controller is killed", func() {
	killed := func(seed uint64, story func(c *cluster), process string) {
		GinkgoHelper()
		scenario := storm.Scenario{
			Options: sim.Options{Seed: seed, Resources: served}, Apart: true,
			Story: func(w *storm.World) {
				c := adopt(w)
				story(c)
				c.settle()
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				return strings.Join([]string{c.sizes(abc...), c.ready(false, abc...), c.ready(true, abc...), c.annotations(v1alpha1.MoveAnnotation, abc...), c.annotations(v1alpha1.ShareAnnotation, abc...)}, " ")
			},
		}
		Expect(storm.CrashPoints(suite, scenario, process)).To(Succeed())
	}

	It("1: growth is split once", func() {
		killed(1, func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 8)
		}, "balance")
	})

	It("1 and 4: a machine moves once, no pod twice, and none is missing", func() {
		killed(2, func(c *cluster) {
			c.deployAll([]Change{Continuous}, 4, 2, 3)
			for i := range 9 {
				c.run(fmt.Sprint("p", i))
			}
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			seen := -1
			for range 600 {
				time.Sleep(time.Second)
				if n := c.Wakeups(); n == seen {
					continue
				} else if seen = n; Sum(c.ready(false, abc...)) < 9 {
					Fail(fmt.Sprintf("only %s machines run", c.ready(false, abc...)))
				}
			}
			for pod, n := range c.moved {
				Expect(n).To(Equal(1), pod)
			}
			Expect(len(c.moved)).To(BeNumerically("<=", 1))
		}, "balance")
	})

	It("6: a pool's excess is what was asked for", func() {
		killed(3, func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("4")}, 2, 2, 2)
			time.Sleep(time.Minute)
			c.set(func() { c.out["a"] = true }) // where a machine in reserve is to be created next
			c.Start("balance", controller())
			time.Sleep(20 * time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, "a")).NotTo(Equal("2"), "others stand in")
			c.set(func() { c.out["a"] = false })
			c.settle()
			Expect(Sum(c.annotations(v1alpha1.ShareAnnotation, abc...))).To(Equal(4))
			Expect(c.annotations(v1alpha1.ShareAnnotation, "a")).NotTo(Equal("0"), "its machines are ready again")
		}, "balance")
	})
})
