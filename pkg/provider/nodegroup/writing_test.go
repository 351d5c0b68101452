// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/sim"
)

var errLost = errors.New("the connection broke")

// fail has the next n patches of the server fail at that moment: Before they take effect, or After.
func (c *cluster) fail(n int, moment sim.Moment, with error) {
	left := n
	hook := func(w sim.Write) error {
		if w.User != serving || w.Verb != "patch" || left == 0 {
			return nil
		}
		left--
		return with
	}
	if moment == sim.Before {
		c.OnWrite(hook)
		return
	}
	c.AfterWrite(hook)
}

var _ = Describe("Raising", func() {
	It("happens once, though its answers are lost (law 5)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.fail(1, sim.After, errLost)
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(4))
			Expect(c.target("pool")).To(BeEquivalentTo(4))
			c.fail(2, sim.Before, apierrors.NewTimeoutError("late", 0))
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(5))
		})
	})

	It("is not refused because a later attempt was, though the first one took effect unseen (law 5)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.fail(1, sim.After, errLost)
			patches := 0
			c.OnWrite(func(w sim.Write) error {
				if w.User != serving {
					return nil
				}
				if patches++; patches == 1 {
					return nil
				}
				return apierrors.NewForbidden(mcm.Resource("machinedeployments"), "pool", errors.New("no"))
			})
			reads := 0
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User == serving && r.Verb == "get" {
					if reads++; reads == 1 {
						return time.Hour, 0
					}
				}
				return 0, 0
			})
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(patches).To(Equal(2))
			Expect(c.replicas("pool")).To(BeEquivalentTo(4))
			c.LatencyOf(nil)
		})
	})

	It("fails within the caller's deadline, and does not take effect later", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.Down(true, serving)
			begun := time.Now()
			Expect(code(c.increase("pool", 1))).To(Equal(codes.Unavailable))
			Expect(time.Since(begun)).To(BeNumerically("<", patience))
			c.Down(false, serving)
			time.Sleep(time.Minute)
			Expect(c.replicas("pool")).To(BeEquivalentTo(3))
		})
	})

	It("goes on where its caller gives up, so that its outcome is known", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.Hold("machinedeployments", serving)
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == serving && r.Verb == "patch" {
					return 0, time.Second
				}
				return 0, 0
			})
			ctx, giveUp := waiting()
			time.AfterFunc(100*time.Millisecond, giveUp)
			_, err := c.NodeGroupIncreaseSize(ctx, &pb.NodeGroupIncreaseSizeRequest{Id: "pool", Delta: 1})
			Expect(code(err)).To(Equal(codes.Canceled))
			time.Sleep(patience)
			Expect(c.target("pool")).To(BeEquivalentTo(4), "no watch has shown it")
			c.LatencyOf(nil)
		})
	})

	DescribeTable("has, of the time that its caller gives it,",
		func(given, want time.Duration) {
			ctx := context.Background()
			if given > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, builders.Noon.Add(given))
				defer cancel()
			}
			Expect(budget(ctx, builders.Noon)).To(Equal(want))
		},
		Entry("four fifths", 5*time.Second, 4*time.Second),
		Entry("at most ten seconds", time.Hour, 10*time.Second),
		Entry("as much where its time limit stands for none", 100*365*24*time.Hour, 10*time.Second),
		Entry("four seconds if there is no deadline", time.Duration(0), 4*time.Second),
	)

	It("survives a server that hangs for one request", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			hung := 0
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User == serving && r.Verb == "patch" && hung == 0 {
					hung++
					return time.Hour, 0
				}
				return 0, 0
			})
			Expect(c.increase("pool", 1)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(4))
			c.LatencyOf(nil)
		})
	})

	It("is not tried again where the API server refuses it", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.fail(1, sim.Before, apierrors.NewForbidden(mcm.Resource("machinedeployments"), "pool", errors.New("no")))
			Expect(code(c.increase("pool", 1))).To(Equal(codes.PermissionDenied))
			c.fail(1, sim.Before, apierrors.NewInvalid(mcm.SchemeGroupVersion.WithKind("MachineDeployment").GroupKind(), "pool", nil))
			Expect(code(c.increase("pool", 1))).To(Equal(codes.FailedPrecondition))
			Expect(c.replicas("pool")).To(BeEquivalentTo(3))
		})
	})

	It("gives up where others write all the time", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			n := 0
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User != serving || r.Verb != "patch" {
					return 0, 0
				}
				n++
				go func(n int) {
					time.Sleep(time.Millisecond)
					c.patch("pool", `{"metadata":{"annotations":{"n":"%d"}}}`, n)
				}(n)
				return 5 * time.Millisecond, 0
			})
			Expect(code(c.increase("pool", 1))).To(Equal(codes.Aborted))
			Expect(n).To(Equal(maxAttempts))
			Expect(c.replicas("pool")).To(BeEquivalentTo(3))
			c.LatencyOf(nil)
		})
	})
})
