// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

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
