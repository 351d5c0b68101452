// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/sim"
)

// named is the annotation that names machines for deletion, without times.
func (c *cluster) named(deployment string) []string {
	return slices.Sorted(maps.Keys(pool.Named(c.deployment(deployment))))
}

// due are the machines that machine-controller-manager deletes whatever the number is. Without a time of the last change it takes the present.
func due(d *v1alpha1.MachineDeployment) []string {
	GinkgoHelper()
	changed := time.Now()
	if text, there := d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime]; there {
		var err error
		changed, err = time.Parse(time.RFC3339, text)
		Expect(err).NotTo(HaveOccurred())
	}
	var all []string
	for name, since := range pool.Named(d) {
		if !since.After(changed) {
			all = append(all, name)
		}
	}
	return all
}

var _ = Describe("Removing", func() {
	It("is one patch of replicas and names, and of no Machine", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b", "c")
			c.lull()
			Expect(c.remove("pool", "node-b", "node-c")).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(1))
			Expect(c.said("pool")).To(Equal([]string{"virtual:///node-a Running", "virtual:///node-b Deleting", "virtual:///node-c Deleting"}))
			Expect(c.named("pool")).To(ConsistOf("b", "c"))
			Expect(due(c.deployment("pool"))).To(BeEmpty())
			Expect(c.writes()).To(Equal([]string{"patch machinedeployments pool"}))
		})
	})

	It("twice is once, whatever the caller still remembers (double DeleteNodes, stale Nodes cache)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 4)
			c.running("pool", "a", "b", "c")
			c.machine("pool", "d", mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
			c.lull()
			c.Hold("", serving)
			for range 3 { // create errors come back in every loop
				Expect(c.remove("pool", "requested://d")).To(Succeed())
			}
			Expect(c.target("pool")).To(BeEquivalentTo(3))
			c.Release("", serving)
			Expect(c.remove("pool", "node-c", "requested://d")).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(2))
			Expect(c.writes()).To(HaveLen(2))
		})
	})

	It("names again machines that stay because replicas have been raised since, and does so once", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b", "c")
			c.lull()
			Expect(c.remove("pool", "node-c")).To(Succeed())
			c.others(1)
			Expect(due(c.deployment("pool"))).To(BeEmpty())
			time.Sleep(time.Minute)
			Expect(due(c.deployment("pool"))).To(ConsistOf("c"))
			Expect(c.replicas("pool")).To(BeEquivalentTo(3))
			Expect(c.writes()).To(HaveLen(2))
			time.Sleep(time.Hour)
			Expect(c.writes()).To(HaveLen(2))
		})
	})

	It("does not name again a machine that is being deleted, however long that takes", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b")
			c.machine("pool", "c", mcm.MachineRunning, func(m *v1alpha1.Machine) { m.Finalizers = []string{"e2e/slow"} })
			c.lull()
			Expect(c.remove("pool", "node-c")).To(Succeed())
			Expect(c.ours.Machines(ns).Delete(context.Background(), "c", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Minute)
			Expect(c.named("pool")).To(ConsistOf("c"))
			Expect(c.writes()).To(HaveLen(1))
		})
	})

	DescribeTable("refuses what is invalid, and nothing changes",
		func(id string, want codes.Code, nodes ...string) {
			play(func(c *cluster) {
				c.pool("pool", "2:9", 3)
				c.pool("other", "1:9", 1)
				c.running("pool", "a", "b", "c")
				c.machine("pool", "p", mcm.MachineRunning, func(m *v1alpha1.Machine) {
					m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: time.Now().Add(time.Hour)}
				})
				c.running("other", "o")
				c.patchNode("node-o", `{"metadata":{"labels":{"x":"y"}}}`)
				c.lull()
				_, err := c.core.CoreV1().Nodes().Create(context.Background(), standIn("node-alien"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				c.lull()
				Expect(code(c.remove(id, nodes...))).To(Equal(want))
				Expect(c.writes()).To(BeEmpty())
			})
		},
		Entry("below min", "pool", codes.FailedPrecondition, "node-a", "node-b"),
		Entry("a preserved machine", "pool", codes.FailedPrecondition, "node-p"),
		Entry("a machine of another group", "pool", codes.InvalidArgument, "node-o"),
		Entry("one of several, of another group", "pool", codes.InvalidArgument, "node-a", "node-o"),
		Entry("a Node with no machine behind it", "pool", codes.NotFound, "node-alien"),
		Entry("of an unknown group", "unknown", codes.NotFound, "node-a"),
		Entry("nothing of an unknown group", "unknown", codes.NotFound),
	)

	It("refuses a machine of the MachineDeployment that has the name now, for one that had it before", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			c.lull()
			memory, nodes := c.wire.server.memory, []*pb.ExternalGrpcNode{{Name: "node-a"}}
			g, err := memory.findGroup("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(memory.machinesToDelete(g, nodes)).To(HaveKey("a"))
			g.Deployment = g.Deployment.DeepCopy()
			g.Deployment.UID = "before"
			_, _, err = memory.machinesToDelete(g, nodes)
			Expect(code(err)).To(Equal(codes.InvalidArgument))
		})
	})

	It("by ten calls at once lowers replicas by ten", func() {
		play(func(c *cluster) {
			c.pool("pool", "0:20", 12)
			var all []string
			for i := range 12 {
				all = append(all, fmt.Sprintf("m%02d", i))
			}
			c.running("pool", all...)
			c.lull()
			c.Hold("", serving)
			c.Latency(3 * time.Millisecond)
			var calls sync.WaitGroup
			failed := make([]error, 10)
			for i := range 10 {
				calls.Go(func() { failed[i] = c.remove("pool", fmt.Sprintf("node-m%02d", i)) })
			}
			calls.Wait()
			Expect(errors.Join(failed...)).NotTo(HaveOccurred())
			Expect(c.replicas("pool")).To(BeEquivalentTo(2))
			Expect(c.named("pool")).To(HaveLen(10))
			Expect(c.writes()).To(HaveLen(10), "no patch in vain")
			c.Release("", serving)
		})
	})

	DescribeTable("happens once, though its answer is lost (law 5)",
		func(moment sim.Moment, times int) {
			play(func(c *cluster) {
				c.pool("pool", "1:9", 3)
				c.running("pool", "a", "b", "c")
				c.lull()
				c.fail(times, moment, errLost)
				Expect(c.remove("pool", "node-c")).To(Succeed())
				Expect(c.replicas("pool")).To(BeEquivalentTo(2))
				Expect(c.named("pool")).To(ConsistOf("c"))
			})
		},
		Entry("before", sim.Before, 1), Entry("before, several times", sim.Before, 5), Entry("after", sim.After, 1),
	)
})
