// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// reader judges answers by what cluster-autoscaler makes of them. It compares them with what the simulated API server stores, not with what
// was recorded.
type reader struct {
	*cluster
	// last is the call before.
	last string
	// sizes are the replicas of each group when the caller's loop began, with its own changes since.
	sizes map[string]int32
	// asked is what the caller asked about each group since it raised it.
	asked map[string][]string
	// failed are the machines that were reported as failed, until the caller removes them.
	failed map[string]bool
	acts   []act
}

// act is what the caller changed or tried to, in one call or in several in a row.
type act struct {
	what string
	by   int
}

func (a act) String() string { return fmt.Sprintf("%s %d", a.what, a.by) }

// did adds to what the caller did.
func (r *reader) did(what, group string, by int, err error) {
	if what += " " + group; err != nil {
		what += " " + code(err).String()
	}
	if end := len(r.acts) - 1; end >= 0 && r.acts[end].what == what {
		r.acts[end].by += by
		return
	}
	r.acts = append(r.acts, act{what, by})
}

// read judges one answer, to a call that wrote something or did not.
func (r *reader) read(method string, request, answer any, err error, wrote bool) {
	GinkgoHelper()
	if method != "NodeGroupNodes" { // which the caller also asks for in the background
		if r.last == "Refresh" {
			Expect(method).To(Equal("NodeGroups"), "each loop of the caller asks for the groups first, and remembers them")
		}
		r.last = method
	}
	switch q := request.(type) {
	case *pb.RefreshRequest:
		Expect(err).NotTo(HaveOccurred(), "the loop would end here")
		r.sizes = map[string]int32{}
		for _, d := range world.List[v1alpha1.MachineDeployment](r, deploymentsGVR) {
			r.sizes[d.Name] = pool.Requested(d)
		}
	case *pb.NodeGroupAutoscalingOptionsRequest:
		Expect(code(err)).To(Equal(codes.Unimplemented), "any other error would end the loop, and options would have a zero in them")
	case *pb.NodeGroupTemplateNodeInfoRequest:
		Expect(err).NotTo(HaveOccurred())
		r.useful(answer.(*pb.NodeGroupTemplateNodeInfoResponse))
	case *pb.NodeGroupTargetSizeRequest:
		r.asked[q.Id] = append(r.asked[q.Id], method)
		Expect(answer).To(HaveField("TargetSize", pool.Requested(r.deployment(q.Id))))
	case *pb.NodeGroupNodesRequest:
		r.asked[q.Id] = append(r.asked[q.Id], method)
		r.listed(q.Id, answer.(*pb.NodeGroupNodesResponse).Instances)
	}
	if wrote || err != nil {
		r.changed(request, err)
	}
}

// changed judges a call that changed something, by the replicas afterwards.
func (r *reader) changed(request any, err error) {
	GinkgoHelper()
	switch q := request.(type) {
	case *pb.NodeGroupIncreaseSizeRequest:
		r.did("raise", q.Id, int(q.Delta), err)
		r.polls(q.Id)
		Expect(err).NotTo(HaveOccurred(), "it asks for no more than max")
		Expect(pool.Requested(r.deployment(q.Id))).To(BeNumerically(">=", r.sizes[q.Id]+q.Delta), "otherwise, the caller waits for machines that never come")
		r.sizes[q.Id] += q.Delta
		r.asked[q.Id] = []string{"raised"}
	case *pb.NodeGroupDeleteNodesRequest:
		Expect(err).NotTo(HaveOccurred())
		for _, node := range q.Nodes {
			what := "remove Nodes of"
			if strings.HasPrefix(node.Name, plan.Placeholder) {
				what = "remove unregistered machines of"
			}
			r.did(what, q.Id, 1, err)
			if node.Annotations["k8s.io/cluster-autoscaler/fake-node-reason"] == "create-error" {
				Expect(r.failed).To(HaveKey(node.ProviderID), "it saw the error")
			}
			delete(r.failed, node.ProviderID)
		}
		r.sizes[q.Id] -= int32(len(q.Nodes))
		Expect(pool.Requested(r.deployment(q.Id))).To(Equal(r.sizes[q.Id]), "otherwise, a machine follows that the caller did not ask for")
	case *pb.NodeGroupDecreaseTargetSizeRequest:
		r.did("lower", q.Id, -int(q.Delta), err)
		Expect(r.settled(q.Id)).To(BeTrue(), "the caller would ask again in each loop, and do nothing else")
	}
}

// polls judges what the caller has done since it raised a group, if it did.
func (r *reader) polls(group string) {
	GinkgoHelper()
	if asked := r.asked[group]; len(asked) > 0 && asked[0] == "raised" {
		Expect(asked).To(ContainElements("NodeGroupTargetSize", "NodeGroupNodes"), "it waits for the machines of %s", group)
	}
}

// listed judges the instances of a group: a Node that is in the group but not in the list counts as deleted, and one that is in the list but not in
// the group as one that never registers.
func (r *reader) listed(group string, instances []*pb.Instance) {
	GinkgoHelper()
	listed := map[string]bool{}
	for _, i := range instances {
		listed[i.Id] = true
		Expect(i.Status.InstanceState).To(BeElementOf(pb.InstanceStatus_instanceDeleting, stateOf(i.Id)), i.Id)
		if i.Status.ErrorInfo != nil {
			Expect(i.Status.InstanceState).To(Equal(pb.InstanceStatus_instanceCreating), "the caller removes no other")
			Expect(i.Status.ErrorInfo.ErrorCode).NotTo(BeEmpty(), "the caller would not see the error")
			r.failed[i.Id] = true
		}
	}
	nodes, err := r.core.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, node := range nodes.Items {
		response, err := r.wire.server.NodeGroupForNode(context.Background(), &pb.NodeGroupForNodeRequest{Node: told(&node)})
		Expect(err).NotTo(HaveOccurred())
		Expect(response.NodeGroup.GetId() == group).To(Equal(listed[node.Spec.ProviderID]), "Node %s is in %q", node.Name, response.NodeGroup.GetId())
	}
}

// stateOf is the state of an instance that is not deleted.
func stateOf(id string) pb.InstanceStatus_InstanceState {
	if strings.HasPrefix(id, plan.Placeholder) {
		return pb.InstanceStatus_instanceCreating
	}
	return pb.InstanceStatus_instanceRunning
}

// useful judges a template: it must be a Node that pods can run on.
func (r *reader) useful(answer *pb.NodeGroupTemplateNodeInfoResponse) {
	GinkgoHelper()
	var node corev1.Node
	Expect(node.Unmarshal(answer.NodeBytes)).To(Succeed())
	for _, label := range []string{corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname} {
		Expect(node.Labels[label]).NotTo(BeEmpty(), "pods select by %s", label)
	}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods"} {
		Expect(node.Status.Allocatable.Name(name, "").Sign()).To(Equal(1), "pods take %s", name)
	}
	Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
	Expect(node.Spec.Taints).To(BeEmpty())
}

// settled reports whether a group has as many machines as the caller counts.
func (r *reader) settled(group string) bool {
	GinkgoHelper()
	response, err := r.wire.server.NodeGroupNodes(context.Background(), &pb.NodeGroupNodesRequest{Id: group})
	Expect(err).NotTo(HaveOccurred())
	stay := 0
	for _, i := range response.Instances {
		if i.Status.InstanceState != pb.InstanceStatus_instanceDeleting {
			stay++
		}
	}
	return stay == int(pool.Requested(r.deployment(group)))
}

// atRest judges the end of a recording: nothing is left to do.
func (r *reader) atRest() {
	GinkgoHelper()
	Expect(r.failed).To(BeEmpty(), "the caller removes each machine whose creation failed")
	for _, d := range world.List[v1alpha1.MachineDeployment](r, deploymentsGVR) {
		Expect(r.settled(d.Name)).To(BeTrue(), d.Name)
		r.polls(d.Name)
	}
}
