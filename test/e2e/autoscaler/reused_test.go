// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// only is the one machine of a pool.
func (p pool) only(ctx context.Context) machine.Machine {
	GinkgoHelper()
	list, err := p.machines(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(list).To(HaveLen(1))
	return list[0]
}

// A caller's view of Nodes may be older than the drain it ends. Where Node names come from addresses, the machine that takes the place of
// a dead one takes its Node name, too: the call then carries the provider id of the one and the name of the other.
var _ = Describe("A Node name that a successor has taken over", func() {
	It("does not delete the successor; its own provider id does", func(ctx context.Context) {
		p := newPool(ctx, "reused", "reused", "0:4:0", 1)
		p.becomes(ctx, "R1 1+0+0")
		dead := p.only(ctx)
		Expect(ours.Machines(namespace).Delete(ctx, dead.Name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(g Gomega) {
			list, err := p.machines(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list).To(HaveExactElements(And(Not(HaveField("Name", dead.Name)), HaveField("Status.CurrentStatus.Phase", machine.MachinePhase("Running")))))
		}).WithContext(ctx).Should(Succeed())
		successor := p.only(ctx)
		name := successor.Labels["node"]

		stale := &pb.ExternalGrpcNode{ProviderID: dead.Spec.ProviderID, Name: name}
		_, err := groups.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "reused", Nodes: []*pb.ExternalGrpcNode{stale}})
		Expect(grpcstatus.Code(err)).To(Equal(codes.FailedPrecondition), "%v", err)
		response, err := groups.NodeGroupForNode(ctx, &pb.NodeGroupForNodeRequest{Node: stale})
		Expect(err).NotTo(HaveOccurred())
		Expect(response.NodeGroup.GetId()).To(BeEmpty())
		Expect(group(ctx, name)).To(Equal("reused"))
		Consistently(func() string { return p.counts(ctx) }, 5*time.Second).Should(Equal("R1 1+0+0"))
		Expect(p.only(ctx).UID).To(Equal(successor.UID))

		_, err = groups.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "reused", Nodes: []*pb.ExternalGrpcNode{{ProviderID: successor.Spec.ProviderID, Name: name}}})
		Expect(err).NotTo(HaveOccurred())
		p.becomes(ctx, "R0 0+0+0")
	})
})
