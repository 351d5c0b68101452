// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/sim"
)

// interrupt has another client write between the server's decision and its patch, once.
func (c *cluster) interrupt(format string, args ...any) {
	var once sync.Once
	c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
		if r.User != serving || r.Verb != "patch" {
			return 0, 0
		}
		delay := time.Duration(0)
		once.Do(func() {
			delay = 50 * time.Millisecond
			go func() {
				time.Sleep(10 * time.Millisecond)
				c.patch("pool", format, args...)
			}()
		})
		return delay, 0
	})
}

var _ = Describe("Raising", func() {
	It("takes what others have raised since the caller's loop began for a part of it: they saw the same pods", func() { // law 12
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			Expect(c.begin()).To(Succeed())
			c.patch("pool", `{"spec":{"replicas":4}}`)
			c.lull()
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(4))
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(5), "in the same loop it has more in mind")
			Expect(c.writes()).To(HaveLen(1))
			c.interrupt(`{"spec":{"replicas":7}}`)
			Expect(c.increase("pool", 3)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(8), "also if they come in between")
			Expect(c.begin()).To(Succeed())
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(9))
		})
	})

	It("counts a removal once whose answer comes after the caller's next loop has begun", func() { // law 12
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b", "c")
			c.lull()
			Expect(c.begin()).To(Succeed())
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == serving && r.Verb == "patch" {
					return 0, time.Second
				}
				return 0, 0
			})
			removed := make(chan error, 1)
			go func() { removed <- c.remove("pool", "node-c") }() // the caller deletes in the background
			time.Sleep(time.Second / 2)
			Expect(c.begin()).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(2))
			Expect(<-removed).To(Succeed())
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(3))
		})
	})

	It("counts a removal that is answered while the caller's next loop begins", func() { // law 12
		group := func() []plan.Group {
			g := builders.Bounded("1:9", 5)
			g.Deployment.Name, g.Deployment.ResourceVersion = "pool", "1"
			return []plan.Group{g}
		}
		v, counted := &callerView{}, make(chan struct{})
		v.startLoop(group)
		v.startLoop(func() []plan.Group {
			read := group()
			go func() { v.addChange("pool", -1, "1"); close(counted) }()
			Consistently(counted, "20ms").ShouldNot(BeClosed(), "it would count in the loop that ends")
			return read
		})
		Eventually(counted).Should(BeClosed())
		Expect(v.replicasOf("pool", 9)).To(BeEquivalentTo(4))
	})

	It("is one patch, read back at once though no watch has shown it (rule 3)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.Hold("machinedeployments", serving)
			Expect(c.increase("pool", 2)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(5))
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(6))
			Expect(c.replicas("pool")).To(BeEquivalentTo(6))
			Expect(c.writes()).To(Equal([]string{"patch machinedeployments pool", "patch machinedeployments pool"}))
			c.Release("machinedeployments", serving)
			c.lull()
			c.patch("pool", `{"spec":{"replicas":4}}`)
			c.lull()
			Expect(c.target("pool")).To(BeEquivalentTo(4), "what others write later counts")
		})
	})

	It("keeps fields and annotations that it does not know", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.patch("pool", `{"metadata":{"annotations":{"a":"b"}},"spec":{"excessReplicas":2,"futureField":"x"}}`)
			c.lull()
			before := c.Get(deploymentsGVR, ns, "pool").Object["spec"].(map[string]any)
			Expect(c.increase("pool", 1)).To(Succeed())
			spec := c.Get(deploymentsGVR, ns, "pool").Object["spec"].(map[string]any)
			Expect(spec["replicas"]).To(BeEquivalentTo(4))
			spec["replicas"] = before["replicas"]
			Expect(spec).To(Equal(before))
			Expect(c.deployment("pool").Annotations).To(HaveKeyWithValue("a", "b"))
		})
	})

	DescribeTable("refuses what is invalid, and nothing changes",
		func(id string, delta int32, want codes.Code) {
			play(func(c *cluster) {
				c.pool("pool", "1:5", 3)
				c.pool("plain", "", 3)
				c.lull()
				Expect(code(c.increase(id, delta))).To(Equal(want))
				Expect(c.writes()).To(BeEmpty())
				Expect(c.increase("pool", 2)).To(Succeed(), "and others are served")
			})
		},
		Entry("an unknown group", "unknown", int32(1), codes.NotFound),
		Entry("no group at all", "", int32(1), codes.NotFound),
		Entry("another namespace", "../kube-system/x", int32(1), codes.NotFound),
		Entry("a MachineDeployment without bounds", "plain", int32(1), codes.NotFound),
		Entry("nothing", "pool", int32(0), codes.InvalidArgument),
		Entry("less than nothing", "pool", int32(-2), codes.InvalidArgument),
		Entry("beyond max", "pool", int32(3), codes.OutOfRange),
	)

	It("is decided anew on what others write meanwhile", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.interrupt(`{"spec":{"replicas":6}}`)
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(7))
		})
	})

	It("is decided anew on what others write meanwhile, however late our watch is", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.Hold("machinedeployments", serving)
			c.patch("pool", `{"spec":{"replicas":6}}`)
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(7))
		})
	})

	It("counts from what was written before the caller's loop began, though no watch has shown it", func() { // law 12
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.Hold("machinedeployments", serving)
			Expect(c.increase("pool", 2)).To(Succeed())
			Expect(c.begin()).To(Succeed())
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(6))
		})
	})

	It("passes max by no race", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:5", 3)
			c.lull()
			c.interrupt(`{"spec":{"replicas":5}}`)
			Expect(code(c.increase("pool", 1))).To(Equal(codes.OutOfRange))
			Expect(c.replicas("pool")).To(BeEquivalentTo(5))
		})
	})

	It("of one group does not wait for another's", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.pool("slow", "1:9", 3)
			c.lull()
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User == serving && r.Name == "slow" && r.Verb == "patch" {
					return time.Second, 0
				}
				return 0, 0
			})
			var all sync.WaitGroup
			all.Go(func() { _ = c.increaseOnly("slow", 1) })
			time.Sleep(time.Millisecond)
			begun := time.Now()
			Expect(c.increaseOnly("pool", 1)).To(Succeed())
			Expect(time.Since(begun)).To(BeNumerically("<", time.Second))
			all.Wait()
			Expect(c.replicas("slow")).To(BeEquivalentTo(4))
			c.LatencyOf(nil)
		})
	})
})

// increaseOnly may be called at the same time as others.
func (c *caller) increaseOnly(id string, delta int32) error {
	ctx, cancel := waiting()
	defer cancel()
	_, err := c.NodeGroupIncreaseSize(ctx, &pb.NodeGroupIncreaseSizeRequest{Id: id, Delta: delta})
	return err
}
