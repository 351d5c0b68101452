// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/reachability"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("Refresh", func() {
	It("fails while an API server does not answer, and succeeds again when it does", func() {
		play(func(c *cluster) {
			Expect(c.begin()).To(Succeed())
			c.Down(true, serving)
			time.Sleep(25 * time.Second)
			Expect(c.begin()).To(Succeed(), "a short break is none")
			time.Sleep(15 * time.Second)
			Expect(code(c.begin())).To(Equal(codes.Unavailable))
			c.Down(false, serving)
			time.Sleep(15 * time.Second)
			Expect(c.begin()).To(Succeed())
		})
	})

	It("fails after a silence until the watch of Machines shows what happened in it", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 1)
			c.machine("pool", "m", mcm.MachinePending)
			c.lull()
			c.Down(true, serving)
			time.Sleep(time.Minute)
			c.patchMachine("m", `{"metadata":{"labels":{"node":"node-m"}},"spec":{"providerID":"virtual:///node-m"}}`)
			c.Hold("machines", serving)
			c.Down(false, serving)
			time.Sleep(70 * time.Second) // caches pause for a minute at most before they try again
			world.Create(c.core.CoreV1().Nodes(), fixture.Node("node-m"))
			c.patch("pool", `{"metadata":{"labels":{"a":"b"}}}`)
			c.lull()
			Expect(code(c.begin())).To(Equal(codes.Unavailable), "the caller would delete m, because it has not registered for so long")
			c.Release("machines", serving)
			c.lull()
			Expect(c.begin()).To(Succeed())
		})
	})

	DescribeTable("fails after a silence until each watch shows what happened in it", func(late string) {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 1)
			c.running("pool", "a")
			label := func(value string) { // on an object of each kind
				text := `{"metadata":{"labels":{"seen":%q}}}`
				c.patch("pool", text, value)
				c.patchMachine("a", text, value)
				c.patchNode("node-a", text, value)
			}
			c.lull()
			c.Down(true, serving)
			time.Sleep(time.Minute)
			label("during")
			c.Hold(late, serving)
			c.Down(false, serving)
			time.Sleep(70 * time.Second) // caches pause for a minute at most before they try again
			label("after")
			c.lull()
			Expect(code(c.begin())).To(Equal(codes.Unavailable))
			c.Release(late, serving)
			c.lull()
			Expect(c.begin()).To(Succeed())
		})
	},
		Entry("that of MachineDeployments", "machinedeployments"),
		Entry("that of Machines", "machines"),
		Entry("that of Nodes", "nodes"),
	)

	It("is well from its first answer on, though no API server was asked but by the caches", func() {
		play(func(c *cluster) {
			Expect(c.process.Stop()).To(Succeed())
			c.Latency(5 * time.Second)
			c.process = c.Start(serving, server(c.wire))
			answered := func() error {
				_, err := c.NodeGroups(context.Background(), &pb.NodeGroupsRequest{}, grpc.WaitForReady(true))
				return err
			}
			Expect(answered()).To(Succeed())
			Expect(c.begin()).To(Succeed())
			c.Latency(0)
		})
	})

	It("fails while the watch does not show what was written, and answers from what was written", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.Hold("machinedeployments", serving)
			Expect(c.increase("pool", 1)).To(Succeed())
			time.Sleep(20 * time.Second)
			Expect(c.begin()).To(Succeed())
			time.Sleep(20 * time.Second)
			Expect(code(c.begin())).To(Equal(codes.Unavailable))
			Expect(c.target("pool")).To(BeEquivalentTo(4))
			c.Release("machinedeployments", serving)
			c.lull()
			Expect(c.begin()).To(Succeed())
		})
	})

	It("does not wait for ever for a MachineDeployment that was written and then deleted", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.ours.MachineDeployments(ns).Delete(context.Background(), "pool", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Minute)
			Expect(c.begin()).To(Succeed())
		})
	})
})

var _ = Describe("Reading", func() {
	It("asks the API server nothing (law 9)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b", "c")
			c.lull()
			time.Sleep(reachability.SilentAfter)
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) { return time.Hour, 0 })
			begun := time.Now()
			Expect(c.begin()).To(Succeed())
			Expect(c.all()).To(HaveLen(1))
			Expect(c.target("pool")).To(BeEquivalentTo(3))
			Expect(c.said("pool")).To(HaveLen(3))
			Expect(c.homeOf(fixture.Node("node-a")).GetId()).To(Equal("pool"))
			Expect(time.Since(begun)).To(BeZero(), "whatever is asked takes an hour")
			c.LatencyOf(nil)
		})
	})
})
