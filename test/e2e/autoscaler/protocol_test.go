// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// group returns the node group of a Node, as the API server has it now.
func group(ctx context.Context, name string) string {
	GinkgoHelper()
	node, err := kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	response, err := groups.NodeGroupForNode(ctx, &pb.NodeGroupForNodeRequest{Node: &pb.ExternalGrpcNode{
		Name: node.Name, ProviderID: node.Spec.ProviderID, Labels: node.Labels, Annotations: node.Annotations,
	}})
	Expect(err).NotTo(HaveOccurred())
	return response.NodeGroup.GetId()
}

var _ = Describe("A caller of the protocol", func() {
	It("uses up the reserve up to max, and gets exactly the machine that it names deleted, also at the cap", func(ctx context.Context) {
		p := newPool(ctx, "cap", "cap", "1:4:2", 2)
		p.becomes(ctx, "R2 2+2+0")
		_, err := groups.Refresh(ctx, &pb.RefreshRequest{})
		Expect(err).NotTo(HaveOccurred())
		list, err := p.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, m := range list {
			want := "cap"
			if _, reserve := m.Annotations[machine.ReserveAnnotation]; reserve {
				want = ""
			}
			Expect(group(ctx, m.Labels["node"])).To(Equal(want))
		}
		_, err = groups.NodeGroupIncreaseSize(ctx, &pb.NodeGroupIncreaseSizeRequest{Id: "cap", Delta: 2})
		Expect(err).NotTo(HaveOccurred())
		target, err := groups.NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: "cap"})
		Expect(err).NotTo(HaveOccurred())
		Expect(target.TargetSize).To(BeEquivalentTo(4))
		p.becomes(ctx, "R4 4+0+0")
		victim := list[0].Name
		for range 2 { // an answer may be lost
			_, err = groups.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "cap", Nodes: []*pb.ExternalGrpcNode{{Name: victim, ProviderID: "requested://" + victim}}})
			Expect(err).NotTo(HaveOccurred())
		}
		p.becomes(ctx, "R3 3+1+0")
		after, err := p.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		var left []string
		for _, m := range after {
			left = append(left, m.Name)
		}
		Expect(left).NotTo(ContainElement(victim))
		for _, m := range list[1:] {
			Expect(left).To(ContainElement(m.Name), "no one named it")
		}
		nodes, err := groups.NodeGroupNodes(ctx, &pb.NodeGroupNodesRequest{Id: "cap"})
		Expect(err).NotTo(HaveOccurred())
		Expect(nodes.Instances).To(HaveLen(3))
	})
})
