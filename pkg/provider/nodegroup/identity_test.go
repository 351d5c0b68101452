// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// Provider ids as AWS has them: the Machine's names the region, the Node's the zone.
const (
	formerMachine, formerNode       = "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1"
	successorMachine, successorNode = "aws:///eu-west-1/i-2", "aws:///eu-west-1a/i-2"
)

// vm makes a Machine of the pool with that Node name and provider id.
func (c *cluster) vm(name, node, id string) {
	GinkgoHelper()
	c.machine("pool", name, mcm.MachineUnknown, func(m *v1alpha1.Machine) {
		m.Labels, m.Spec.ProviderID = map[string]string{mcm.NodeLabelKey: node}, id
	})
}

func (c *cluster) registered(name, id string) {
	GinkgoHelper()
	node := fixture.Node(name, func(n *corev1.Node) { n.Spec.ProviderID = id })
	_, err := c.core.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// removeOne asks for one Node to be deleted.
func (c *caller) removeOne(node *pb.ExternalGrpcNode) error {
	ctx, cancel := waiting()
	defer cancel()
	_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "pool", Nodes: []*pb.ExternalGrpcNode{node}})
	return err
}

// groupOf is the id of a Node's group.
func (c *caller) groupOf(node *pb.ExternalGrpcNode) string {
	GinkgoHelper()
	ctx, cancel := waiting()
	defer cancel()
	response, err := c.NodeGroupForNode(ctx, &pb.NodeGroupForNodeRequest{Node: node})
	Expect(err).NotTo(HaveOccurred())
	return response.NodeGroup.GetId()
}

var _ = Describe("A Node name that was another machine's before (law 13)", func() {
	DescribeTable("provider id first; a name that contradicts it is refused, and nothing changes",
		func(world func(c *cluster), id, name string, want codes.Code, named ...string) {
			play(func(c *cluster) {
				c.pool("pool", "0:9", 5)
				c.vm("other", "other", "aws:///eu-west-1/i-9")
				c.registered("other", "aws:///eu-west-1a/i-9")
				world(c)
				c.lull()
				node, group := &pb.ExternalGrpcNode{ProviderID: id, Name: name}, ""
				if len(named) > 0 {
					group = "pool"
				}
				Expect(c.groupOf(node)).To(Equal(group))
				Expect(code(c.removeOne(node))).To(Equal(want))
				Expect(c.named("pool")).To(HaveExactElements(named))
				Expect(c.replicas("pool")).To(BeEquivalentTo(5 - len(named)))
				Expect(c.writes()).To(HaveLen(len(named)))
			})
		},
		Entry("the former is gone: its successor stays", successor, formerNode, "ip-1", codes.FailedPrecondition),
		Entry("the former exists beside it: the former is deleted", both, formerNode, "ip-1", codes.OK, "former"),
		Entry("the successor is found by its own provider id", both, successorNode, "ip-1", codes.OK, "successor"),
		Entry("the former's record alone, and the call means the Node of now", formerRecord, successorNode, "ip-1", codes.NotFound),
		Entry("the name is another machine's", both, successorNode, "other", codes.FailedPrecondition),
		Entry("the provider id is unknown and the name another machine's", both, "aws:///eu-west-1a/i-7", "other", codes.FailedPrecondition),
		Entry("a placeholder, and a name of another machine", both, "requested://former", "other", codes.FailedPrecondition),
		Entry("a placeholder as a name, of another machine", both, formerNode, "requested://successor", codes.FailedPrecondition),
		Entry("a placeholder and the machine's own Node name", both, "requested://former", "ip-1", codes.OK, "former"),
		Entry("a provider id alone", both, successorNode, "", codes.OK, "successor"),
		Entry("a name alone", both, "", "ip-1", codes.OK, "successor"),
		Entry("a name alone that two machines without Nodes share", unregistered, "", "ip-1", codes.FailedPrecondition),
		Entry("a provider id and an unknown name", both, successorNode, "ip-7", codes.FailedPrecondition),
		Entry("a placeholder as a name alone", both, "", "requested://former", codes.OK, "former"),
		Entry("an unknown name alone: the machine is gone", both, "", "ip-7", codes.OK),
		Entry("neither is known: the machine is gone", both, "aws:///eu-west-1a/i-7", "ip-7", codes.OK),
		Entry("a provider id whose last part belongs to another machine", twins, "cloud:///b/i-7", "", codes.OK, "twin-b"),
		Entry("Machine and Node write provider ids that cannot be compared", foreign, "cloud-b/7", "ip-1", codes.OK, "odd"),
	)

	It("is the Node of the one machine whose provider id it has", func() {
		play(func(c *cluster) {
			c.pool("pool", "0:9", 5)
			both(c)
			c.lull()
			Expect(c.said("pool")).To(ConsistOf("requested://former Running", successorNode+" Running"))
		})
	})

	It("keeps a whole call from taking effect", func() {
		play(func(c *cluster) {
			c.pool("pool", "0:9", 5)
			successor(c)
			c.running("pool", "a")
			c.lull()
			ctx, cancel := waiting()
			defer cancel()
			_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "pool", Nodes: []*pb.ExternalGrpcNode{
				told(standIn("node-a")), {ProviderID: formerNode, Name: "ip-1"},
			}})
			Expect(code(err)).To(Equal(codes.FailedPrecondition))
			Expect(c.writes()).To(BeEmpty())
		})
	})
})

func twins(c *cluster) {
	c.vm("twin-a", "node-a", "cloud:///a/i-7")
	c.vm("twin-b", "node-b", "cloud:///b/i-7")
}

func successor(c *cluster) {
	c.vm("successor", "ip-1", successorMachine)
	c.registered("ip-1", successorNode)
}

func both(c *cluster) {
	c.vm("former", "ip-1", formerMachine)
	successor(c)
}

func formerRecord(c *cluster) {
	c.vm("former", "ip-1", formerMachine)
	c.registered("ip-1", successorNode)
}

func unregistered(c *cluster) {
	c.vm("former", "ip-1", formerMachine)
	c.vm("successor", "ip-1", successorMachine)
}

func foreign(c *cluster) {
	c.vm("odd", "ip-1", "cloud-a://x")
	c.registered("ip-1", "cloud-b/7")
}
