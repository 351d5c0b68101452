// SPDX-License-Identifier: Apache-2.0

//go:build !race

package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// whole is the process as the binary runs it: the controller of MachineDeployments, and the server of node groups.
const whole = "evenkeel"

func everything(w *wire) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		running.Go(func() { _ = server(w)(ctx, config) })
		return manager.Program(machinetaint.Settings{})(ctx, config)
	}
}

const bootTime, drainTime = 3 * time.Minute, 30 * time.Second

// inhabit starts everything on a cluster, and a pool that is at rest.
func (c *cluster) inhabit(bounds string, replicas int32) {
	GinkgoHelper()
	c.Latency(2 * time.Millisecond)
	c.process = c.Start(whole, everything(c.wire))
	c.Start("machines", func(ctx context.Context, config *rest.Config) error {
		return mcm.Machines{
			Boot:  func(*mcmapi.Machine) time.Duration { return bootTime },
			Drain: func(*mcmapi.Machine) time.Duration { return drainTime },
		}.Run(ctx, config, config)
	})
	world.Create(c.ours.MachineDeployments(ns), world.MachineDeployment("pool", replicas, func(d *v1alpha1.MachineDeployment) {
		d.Annotations[v1alpha1.BoundsAnnotation] = bounds
	}))
	c.rest()
}

// rest waits until nothing happens any more: no machine takes as long to boot.
func (c *cluster) rest() {
	GinkgoHelper()
	Expect(c.Settle(4*time.Minute, 12*time.Hour)).To(Succeed())
}

func dwell(bounds string, replicas int32, body func(c *cluster)) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		c := adopt(storm.NewWorld(sim.Options{Seed: 1}))
		defer c.end()
		c.inhabit(bounds, replicas)
		body(c)
	})
}

// lists are the names of machines that serve and of those in reserve.
func (c *cluster) lists() (serves, reserve []string) {
	for _, m := range world.List[v1alpha1.Machine](c, machinesGVR) {
		if pool.Marked(m) {
			reserve = append(reserve, m.Name)
		} else {
			serves = append(serves, m.Name)
		}
	}
	return serves, reserve
}

// shape is replicas, and machines that serve and wait, as in "4: 4+2".
func (c *cluster) shape() string {
	serves, reserve := c.lists()
	return fmt.Sprintf("%d: %d+%d", c.replicas("pool"), len(serves), len(reserve))
}

var _ = Describe("Beside machine-controller-manager and the reserve", func() {
	It("1:10:2: a raise takes a reserve machine within seconds, and no second call is needed", func() {
		dwell("1:10:2", 3, func(c *cluster) {
			Expect(c.shape()).To(Equal("3: 3+2"))
			_, waiting := c.lists()
			Expect(c.begin()).To(Succeed())
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(4))
			time.Sleep(2 * time.Second)
			serves, _ := c.lists()
			Expect(serves).To(ContainElement(BeElementOf(waiting)), "minutes before a new machine could boot")
			Expect(c.said("pool")).To(HaveLen(4), "target and instances agree")
			Expect(c.target("pool")).To(BeEquivalentTo(4), "refilling does not move the target")
			c.rest()
			Expect(c.shape()).To(Equal("4: 4+2"))
		})
	})

	It("1:5:2: at max the reserve gives way, and the sum never passes max", func() {
		dwell("1:5:2", 3, func(c *cluster) {
			most := world.MostMachines(c.World)
			for _, want := range []string{"4: 4+1", "5: 5+0"} {
				Expect(c.begin()).To(Succeed())
				Expect(c.increase("pool", 1)).To(Succeed())
				c.rest()
				Expect(c.shape()).To(Equal(want))
			}
			Expect(code(c.increase("pool", 1))).To(Equal(codes.OutOfRange))
			Expect(*most).To(BeNumerically("<=", 5))
		})
	})

	It("0:6:2: from zero, the first pod finds a machine", func() {
		dwell("0:6:2", 0, func(c *cluster) {
			Expect(c.shape()).To(Equal("0: 0+2"))
			Expect(c.said("pool")).To(BeEmpty())
			Expect(c.increase("pool", 1)).To(Succeed())
			time.Sleep(2 * time.Second)
			Expect(c.said("pool")).To(ConsistOf(HaveSuffix(" Running")))
			c.rest()
			Expect(c.shape()).To(Equal("1: 1+2"))
		})
	})

	It("1:5:2: five times up to max and down again, exactly the named machines go, and each call is made once", func() {
		dwell("1:5:2", 3, func(c *cluster) {
			most := world.MostMachines(c.World)
			for range 5 {
				Expect(c.begin()).To(Succeed())
				Expect(c.increase("pool", 2)).To(Succeed())
				c.rest()
				Expect(c.shape()).To(Equal("5: 5+0"))
				serves, _ := c.lists()
				var named sync.WaitGroup
				failed := make([]error, 2)
				for i := range 2 { // in background, one call for each Node
					named.Go(func() { failed[i] = c.remove("pool", serves[i]) })
				}
				named.Wait()
				Expect(failed).To(HaveEach(Succeed()))
				Expect(c.target("pool")).To(BeEquivalentTo(3))
				c.rest()
				Expect(c.shape()).To(Equal("3: 3+2"))
				left, reserve := c.lists()
				Expect(left).To(ConsistOf(serves[2:]))
				Expect(reserve).NotTo(ContainElements(serves[:2]))
			}
			Expect(*most).To(BeNumerically("<=", 5))
		})
	})

	It("1:9:1: a machine that never joins is withdrawn once: 3, 4, 3, and no healthy one is deleted", func() {
		dwell("1:9:1", 3, func(c *cluster) {
			serves, _ := c.lists()
			Expect(c.increase("pool", 3)).To(Succeed())
			time.Sleep(10 * time.Second)
			var missing []string
			for _, line := range c.said("pool") {
				if id := line[:len(line)-len(" Creating")]; line[len(id):] == " Creating" {
					missing = append(missing, id)
				}
			}
			Expect(missing).To(HaveLen(2), "one was taken from the reserve")
			Expect(c.decrease("pool", -2)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(6), "what exists is not withdrawn")
			Expect(c.remove("pool", missing...)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(4))
			c.rest()
			Expect(c.shape()).To(Equal("4: 4+1"))
			left, _ := c.lists()
			Expect(left).To(ContainElements(serves))
		})
	})

	It("ends the same wherever the process is killed, up to max and down", func() {
		story := func(w *storm.World) {
			c := adopt(w)
			defer c.hangUp()
			c.inhabit("1:3:1", 2)
			until := func(act func(*cluster) error) {
				for c.loop(act) != nil {
					time.Sleep(10 * time.Second)
				}
				c.rest()
			}
			until(func(c *cluster) error { return c.wish(3) })
			serves, _ := c.lists()
			slices.Sort(serves)
			until(func(c *cluster) error { return c.remove("pool", serves[0]) })
		}
		end := func(w *storm.World) any { return (&cluster{World: w}).shape() }
		Expect(storm.CrashPoints(suite, storm.Scenario{Options: sim.Options{Seed: 5}, Story: story, End: end}, whole)).To(Succeed())
	})
})
