// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A group that does not exist", func() {
	DescribeTable("is not found, whatever the caller asks",
		func(ask func(context.Context, *cluster) error) {
			play(func(c *cluster) {
				c.pool("z1", "1:5", 3)
				c.lull()
				ctx, cancel := waiting()
				defer cancel()
				Expect(code(ask(ctx, c))).To(Equal(codes.NotFound))
			})
		},
		Entry("its size", func(ctx context.Context, c *cluster) error {
			_, err := c.NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: "gone"})
			return err
		}),
		Entry("its machines", func(ctx context.Context, c *cluster) error {
			_, err := c.NodeGroupNodes(ctx, &pb.NodeGroupNodesRequest{Id: "gone"})
			return err
		}),
		Entry("what its machines offer", func(ctx context.Context, c *cluster) error {
			_, err := c.NodeGroupTemplateNodeInfo(ctx, &pb.NodeGroupTemplateNodeInfoRequest{Id: "gone"})
			return err
		}),
		Entry("to raise it", func(_ context.Context, c *cluster) error { return c.increase("gone", 1) }),
		Entry("to lower it", func(_ context.Context, c *cluster) error { return c.decrease("gone", -1) }),
		Entry("to remove a machine", func(_ context.Context, c *cluster) error { return c.remove("gone", "node-a") }),
	)

	It("is not found, if it is deleted while it is being raised", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User != serving || r.Verb != "patch" {
					return 0, 0
				}
				go func() {
					time.Sleep(time.Millisecond)
					Expect(c.ours.MachineDeployments(ns).Delete(context.Background(), "pool", metav1.DeleteOptions{})).To(Succeed())
				}()
				return 10 * time.Millisecond, 0
			})
			Expect(code(c.increase("pool", 1))).To(Equal(codes.NotFound))
		})
	})
})
