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
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
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

var _ = Describe("Removing", func() {
	It("of a machine that terminates is a success that changes nothing, however late our watch of Machines is", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b")
			c.machine("pool", "c", mcm.MachineRunning, func(m *v1alpha1.Machine) { m.Finalizers = []string{"e2e/slow"} })
			c.lull()
			c.Hold("machines", serving)
			Expect(c.remove("pool", "node-c")).To(Succeed())
			Expect(c.ours.Machines(ns).Delete(context.Background(), "c", metav1.DeleteOptions{})).To(Succeed())
			c.patch("pool", `{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
			time.Sleep(2 * time.Minute)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Running"), "it does not know yet")
			Expect(c.remove("pool", "node-c", "node-b")).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(1))
			Expect(c.named("pool")).To(ConsistOf("b"))
			Expect(c.ours.Machines(ns).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			Expect(c.remove("pool", "node-a")).To(Succeed(), "it is gone, and no min is in the way")
			Expect(c.replicas("pool")).To(BeEquivalentTo(1))
		})
	})

	It("of a machine that cannot be looked at is tried again by the caller, and changes nothing", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b", "c")
			c.lull()
			c.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Failed}}, serving)
			for _, node := range []string{"node-c", "node-gone", "requested://gone"} {
				Expect(code(c.remove("pool", node))).To(Equal(codes.Unavailable), node)
			}
			Expect(c.writes()).To(BeEmpty())
			c.Trouble("machines", sim.Trouble{}, serving)
			Expect(c.remove("pool", "node-c")).To(Succeed())
		})
	})

	DescribeTable("of a machine that the server does not know yet is no success", func(node string, phase mcm.MachinePhase) {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b")
			c.lull()
			c.Hold("", serving)
			c.machine("pool", "c", phase)
			Expect(code(c.remove("pool", node))).To(Equal(codes.Unavailable))
			c.Release("", serving)
			c.lull()
			Expect(c.remove("pool", node)).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(2))
			Expect(c.named("pool")).To(ConsistOf("c"))
		})
	},
		Entry("with a Node", "node-c", mcm.MachineRunning),
		Entry("without a Node", "requested://c", mcm.MachinePending),
	)

	It("of a machine as one without a Node is refused once it has one, however late our watch of Machines is", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b")
			c.machine("pool", "c", mcm.MachinePending)
			c.lull()
			c.Hold("machines", serving)
			c.patchMachine("c", `{"metadata":{"labels":{%q:"node-c"}},"spec":{"providerID":"virtual:///node-c"}}`, mcm.NodeLabelKey)
			world.Create(c.core.CoreV1().Nodes(), fixture.Node("node-c"))
			c.lull()
			Expect(code(c.remove("pool", "requested://c"))).To(Equal(codes.FailedPrecondition), "pods may run there that the caller does not know")
			c.Release("machines", serving)
			c.lull()
			Expect(code(c.remove("pool", "requested://c"))).To(Equal(codes.FailedPrecondition), "the caller lists machines every two minutes only")
			Expect(c.writes()).To(BeEmpty())
			Expect(c.remove("pool", "node-c")).To(Succeed())
			Expect(c.remove("pool", "requested://c")).To(Succeed(), "it is leaving")
			Expect(c.replicas("pool")).To(BeEquivalentTo(2))
		})
	})

	It("of a machine by its provider id alone is as careful as with its name", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b")
			c.lull()
			Expect(code(c.removeOne(&pb.ExternalGrpcNode{ProviderID: "requested://b"}))).To(Equal(codes.FailedPrecondition), "it has registered since")
			c.Hold("", serving)
			c.running("pool", "c")
			c.machine("pool", "d", mcm.MachinePending)
			Expect(code(c.removeOne(&pb.ExternalGrpcNode{ProviderID: "virtual:///node-c"}))).To(Equal(codes.Unavailable), "it is not known yet")
			Expect(c.removeOne(&pb.ExternalGrpcNode{ProviderID: "virtual:///node-gone"})).To(Succeed())
			Expect(c.writes()).To(BeEmpty())
			c.Release("", serving)
			c.lull()
			Expect(c.removeOne(&pb.ExternalGrpcNode{ProviderID: "virtual:///node-c"})).To(Succeed())
			Expect(c.named("pool")).To(ConsistOf("c"))
		})
	})

	It("of a machine that is gone, or terminates, is a success that changes nothing", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a")
			c.machine("pool", "b", mcm.MachineTerminating)
			c.lull()
			Expect(c.remove("pool", "node-gone", "requested://gone", "requested://b")).To(Succeed())
			Expect(c.writes()).To(BeEmpty())
		})
	})

	It("of a machine whose name MCM has taken out already, while our watch of Machines is late, is a success that changes nothing", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b", "c")
			c.lull()
			Expect(c.remove("pool", "node-c")).To(Succeed())
			c.Hold("machines", serving)
			c.patch("pool", `{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
			Expect(c.ours.Machines(ns).Delete(context.Background(), "c", metav1.DeleteOptions{})).To(Succeed())
			c.lull()
			Expect(c.remove("pool", "node-c")).To(Succeed())
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Deleting"))
			Expect(c.replicas("pool")).To(BeEquivalentTo(2))
			c.Release("machines", serving)
			c.lull()
			Expect(c.said("pool")).To(HaveLen(2))
		})
	})

	It("of a machine that the API server shows as condemned is a success that changes nothing, however late our watch of Machines is", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.running("pool", "a", "b", "c")
			c.lull()
			Expect(c.remove("pool", "node-c")).To(Succeed())
			c.Hold("machines", serving)
			c.patchMachine("c", `{"metadata":{"annotations":{%q:"1",%q:%q}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime, builders.NoonText)
			c.patch("pool", `{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
			time.Sleep(2 * namedFor)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Running"), "only the API server shows it now")
			Expect(c.remove("pool", "node-c")).To(Succeed())
			Expect(c.replicas("pool")).To(BeEquivalentTo(2))
			Expect(c.named("pool")).To(BeEmpty())
		})
	})

	It("of a machine that was preserved a moment ago is refused, however late our watch of Machines is", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			c.lull()
			c.Hold("machines", serving)
			m, err := c.ours.Machines(ns).Get(context.Background(), "a", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: time.Now().Add(time.Hour)}
			_, err = c.ours.Machines(ns).UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(code(c.remove("pool", "node-a"))).To(Equal(codes.FailedPrecondition))
			Expect(c.writes()).To(BeEmpty())
		})
	})
})

var _ = Describe("Removing", func() {
	It("waits for the end of a rollout", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			d := c.deployment("pool")
			next := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", OwnerReferences: world.OwnedBy("MachineDeployment", d)}}
			next, err := c.ours.MachineSets(ns).Create(context.Background(), next, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			m := builders.Machine("")
			m.Name, m.OwnerReferences = "n", world.OwnedBy("MachineSet", next)
			_, err = c.ours.Machines(ns).Create(context.Background(), m, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			Expect(code(c.remove("pool", "node-a"))).To(Equal(codes.FailedPrecondition))
			Expect(c.increase("pool", 1)).To(Succeed(), "growing is possible all the time")
			Expect(c.ours.Machines(ns).Delete(context.Background(), "n", metav1.DeleteOptions{})).To(Succeed())
			c.lull()
			Expect(c.remove("pool", "node-a")).To(Succeed())
		})
	})

	It("reads machines and MachineSets once, so that a rollout that ends meanwhile counts whole or not at all", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			other := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", OwnerReferences: world.OwnedBy("MachineDeployment", c.deployment("pool"))}}
			other.Spec.Replicas = 1
			_, err := c.ours.MachineSets(ns).Create(context.Background(), other, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			changing := &changingSource{Source: c.wire.server.memory.source}
			c.wire.server.memory.source = changing
			Expect(code(c.remove("pool", "node-a"))).To(Equal(codes.FailedPrecondition), "as the first read shows it")
			Expect(changing.reads).To(Equal(1))
		})
	})

	It("waits while another MachineSet asks for machines, though it has none: the smaller number would be spread over both", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			old := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-0", OwnerReferences: world.OwnedBy("MachineDeployment", c.deployment("pool"))}}
			old.Spec.Replicas = 1
			old, err := c.ours.MachineSets(ns).Create(ctx, old, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			set, err := c.ours.MachineSets(ns).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas = 2
			_, err = c.ours.MachineSets(ns).Update(ctx, set, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			Expect(code(c.remove("pool", "node-a"))).To(Equal(codes.FailedPrecondition))
			old.Spec.Replicas = 0
			_, err = c.ours.MachineSets(ns).Update(ctx, old, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			Expect(c.remove("pool", "node-a")).To(Succeed())
		})
	})
})

// changingSource shows only the first MachineSet from the second read on.
type changingSource struct {
	pool.Source
	reads int
}

func (s *changingSource) Sets(deployment types.UID) []*mcm.MachineSet {
	sets := s.Source.Sets(deployment)
	if s.reads++; s.reads > 1 {
		return sets[:1]
	}
	return sets
}
