// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
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
			time.Sleep(time.Minute) // as long as a loop may take
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

var _ = Describe("A patch", func() {
	It("takes effect on the version that it was decided on alone", func() {
		c, err := plan.NewRemoval(builders.Bounded("1:5", 3), builders.Members("SSS"), false, map[string]bool{"b": true}, builders.Noon)
		Expect(err).NotTo(HaveOccurred())
		body, err := mergePatch(c, builders.Deployment("1:5", 3))
		Expect(err).NotTo(HaveOccurred())
		Expect(body).To(MatchJSON(`{"metadata": {"resourceVersion": "7", "uid": "uid-pool", "annotations": {
			"machine.sapcloud.io/last-deployment-replica-change-by-scaler-time": "2026-03-01T11:59:59Z",
			"node.machine.sapcloud.io/trigger-deletion-by-mcm": "b~2026-03-01T12:00:00Z"}}, "spec": {"replicas": 2}}`))
	})

	It("writes replicas with the reserve that they include, and its record", func() {
		body := func(delta int32) string {
			g := builders.Bounded("1:9", 7, v1alpha1.AppliedExcessAnnotation+"=2,max=9,counted=2,replicas=7")
			c, err := plan.NewRaise(g, 5, delta)
			Expect(err).NotTo(HaveOccurred())
			raw, err := mergePatch(c, g.Deployment)
			Expect(err).NotTo(HaveOccurred())
			return string(raw)
		}
		Expect(body(1)).To(MatchJSON(`{"metadata": {"resourceVersion": "7", "uid": "uid-pool", "annotations": {
			"evenkeel.machine.sapcloud.io/applied-excess": "2,max=9,counted=2,replicas=8"}}, "spec": {"replicas": 8}}`))
		Expect(body(4)).To(MatchJSON(`{"metadata": {"resourceVersion": "7", "uid": "uid-pool", "annotations": {
			"evenkeel.machine.sapcloud.io/applied-excess": "0"}}, "spec": {"replicas": 9}}`))
	})

	It("leaves replicas alone where they stay", func() {
		c, err := plan.NewRemoval(builders.Bounded("1:5", 3), builders.Members("SSSR"), false, map[string]bool{"d": true}, builders.Noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(mergePatch(c, builders.Deployment("1:5", 3))).NotTo(ContainSubstring("replicas\":"))
	})
})

var _ = Describe("A change of the target size", func() {
	It("removes an annotation that is to be empty", func() {
		c := plan.Change{Annotations: map[string]string{"a": "", "b": "c"}}
		d := builders.Bounded("1:9", 3).Deployment
		d.ResourceVersion, d.UID = "7", "u"
		Expect(mergePatch(c, d)).To(MatchJSON(`{"metadata":{"resourceVersion":"7","uid":"u","annotations":{"a":null,"b":"c"}}}`))
	})
})
