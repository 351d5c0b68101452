// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// remembered is how much a server keeps beside its informers.
func (s *Server) remembered() map[string]int {
	m := s.memory
	return map[string]int{
		"written": m.written.Len(), "named": len(m.recentNames.last), "lastNodes": len(m.lastNodes.last), "callerView": len(m.callerView.groups), "staleMarks": len(m.staleMarks.since), "failures": len(m.failures.since), "reports": len(m.reports.since),
		"locks": len(s.locks.byGroup),
	}
}

var _ = Describe("A soak", func() {
	It("of thousands of objects that come and go leaves nothing behind", Label("soak"), func() {
		const pools = 50 // of a MachineDeployment, a MachineSet, a Machine and a Node each
		rounds := storm.Soak(10_000, 4*pools)
		play(func(c *cluster) {
			s := c.wire.server
			ctx, core := context.Background(), c.core.CoreV1().Nodes()
			for round := range rounds {
				var names []string
				for i := range pools {
					name := fmt.Sprintf("pool-%d-%d", round, i)
					names = append(names, name)
					c.pool(name, "0:9", 1)
					c.running(name, name)
				}
				time.Sleep(time.Minute + time.Second) // until the Nodes can be templates
				Expect(c.begin()).To(Succeed())
				for _, name := range names {
					c.patchNode("node-"+name, `{"metadata":{"labels":{"seen":"again"}}}`)
				}
				c.lull()
				Expect(s.remembered()).To(HaveKeyWithValue("lastNodes", pools), "it does remember")
				for _, name := range names {
					node := told(standIn("node-" + name))
					node.Annotations = map[string]string{"evenkeel.machine.sapcloud.io/reserve": builders.NoonText}
					Expect(c.groupOf(node)).To(BeEmpty())
					Expect(c.increase(name, 1)).To(Succeed())
					_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: name, Nodes: []*pb.ExternalGrpcNode{node}})
					Expect(err).NotTo(HaveOccurred())
				}
				Expect(s.remembered()).To(HaveKeyWithValue("staleMarks", pools), "it does remember")
				for _, name := range names {
					Expect(core.Delete(ctx, "node-"+name, metav1.DeleteOptions{})).To(Succeed())
					Expect(c.ours.Machines(ns).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
					Expect(c.ours.MachineSets(ns).Delete(ctx, name+"-1", metav1.DeleteOptions{})).To(Succeed())
					Expect(c.ours.MachineDeployments(ns).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
				}
				c.lull()
			}
			c.pool("last", "0:9", 1)
			time.Sleep(time.Hour)
			for kept, n := range s.remembered() {
				Expect(n).To(BeNumerically("<=", 1), kept)
			}
		})
	})
})
