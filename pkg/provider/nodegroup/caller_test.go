// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// caller calls as cluster-autoscaler's client does, with its caches and its patience.
type caller struct {
	pb.CloudProviderClient
	connection *grpc.ClientConn
	groups     []*pb.NodeGroup
	home       map[string]*pb.NodeGroup
	instances  map[string]listing
}

// listing is what the caller remembers of a group's instances, for two minutes.
type listing struct {
	at  time.Time
	all []*pb.Instance
}

const (
	patience = 5 * time.Second
	memoryOf = 2 * time.Minute
)

func newCaller(w *wire) *caller {
	connection, err := grpc.NewClient("passthrough:///wire", grpc.WithContextDialer(w.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	return &caller{CloudProviderClient: pb.NewCloudProviderClient(connection), connection: connection, home: map[string]*pb.NodeGroup{}, instances: map[string]listing{}}
}

func (c *caller) hangUp() { _ = c.connection.Close() }

func waiting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// begin is the beginning of a loop.
func (c *caller) begin() error {
	ctx, cancel := waiting()
	defer cancel()
	if _, err := c.Refresh(ctx, &pb.RefreshRequest{}); err != nil {
		return err
	}
	c.groups, c.home = nil, map[string]*pb.NodeGroup{}
	return nil
}

// all are the groups; an error looks like none at all.
func (c *caller) all() []*pb.NodeGroup {
	ctx, cancel := waiting()
	defer cancel()
	if c.groups == nil {
		response, _ := c.NodeGroups(ctx, &pb.NodeGroupsRequest{})
		c.groups = response.GetNodeGroups()
	}
	return c.groups
}

// homeOf is a Node's group, remembered until the next loop unless there is none.
func (c *caller) homeOf(node *corev1.Node) *pb.NodeGroup {
	GinkgoHelper()
	key := node.Name + "/" + node.Spec.ProviderID
	if g, ok := c.home[key]; ok {
		return g
	}
	ctx, cancel := waiting()
	defer cancel()
	response, err := c.NodeGroupForNode(ctx, &pb.NodeGroupForNodeRequest{Node: told(node)})
	Expect(err).NotTo(HaveOccurred())
	if response.NodeGroup.GetId() == "" {
		return nil
	}
	c.home[key] = response.NodeGroup
	return response.NodeGroup
}

func (c *caller) target(id string) int32 {
	GinkgoHelper()
	ctx, cancel := waiting()
	defer cancel()
	response, err := c.NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: id})
	Expect(err).NotTo(HaveOccurred())
	return response.TargetSize
}

// listed are a group's instances, as remembered.
func (c *caller) listed(id string) []*pb.Instance {
	GinkgoHelper()
	if known, ok := c.instances[id]; ok && time.Since(known.at) < memoryOf {
		return known.all
	}
	ctx, cancel := waiting()
	defer cancel()
	response, err := c.NodeGroupNodes(ctx, &pb.NodeGroupNodesRequest{Id: id})
	Expect(err).NotTo(HaveOccurred())
	c.instances[id] = listing{time.Now(), response.Instances}
	return response.Instances
}

func (c *caller) forget(id string) { delete(c.instances, id) }

// said is what the instances say, sorted as they come, as in "virtual:///node-a Running".
func (c *caller) said(id string) []string {
	GinkgoHelper()
	c.forget(id)
	all := []string{}
	for _, i := range c.listed(id) {
		all = append(all, i.Id+" "+wording(i))
	}
	return all
}

func (c *caller) increase(id string, delta int32) error {
	ctx, cancel := waiting()
	defer cancel()
	_, err := c.NodeGroupIncreaseSize(ctx, &pb.NodeGroupIncreaseSizeRequest{Id: id, Delta: delta})
	c.forget(id)
	return err
}

func (c *caller) decrease(id string, delta int32) error {
	ctx, cancel := waiting()
	defer cancel()
	_, err := c.NodeGroupDecreaseTargetSize(ctx, &pb.NodeGroupDecreaseTargetSizeRequest{Id: id, Delta: delta})
	return err
}

// remove asks for Nodes to be deleted. One that begins with requested:// is a placeholder.
func (c *caller) remove(id string, nodes ...string) error {
	ctx, cancel := waiting()
	defer cancel()
	request := &pb.NodeGroupDeleteNodesRequest{Id: id}
	for _, name := range nodes {
		request.Nodes = append(request.Nodes, told(standIn(name)))
	}
	_, err := c.NodeGroupDeleteNodes(ctx, request)
	return err
}

// standIn is a Node as the caller speaks of it: for a machine without one, a fake in its place.
func standIn(name string) *corev1.Node {
	if len(name) > len(plan.Placeholder) && name[:len(plan.Placeholder)] == plan.Placeholder {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"k8s.io/cluster-autoscaler/fake-node-reason": "unregistered"}},
			Spec:       corev1.NodeSpec{ProviderID: name},
		}
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "virtual:///" + name}}
}

// template is a group's, decoded as the caller does.
func (c *caller) template(id string) (*corev1.Node, error) {
	ctx, cancel := waiting()
	defer cancel()
	response, err := c.NodeGroupTemplateNodeInfo(ctx, &pb.NodeGroupTemplateNodeInfoRequest{Id: id})
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{}
	return node, node.Unmarshal(response.NodeBytes)
}

// told is a Node as calls speak of it.
func told(node *corev1.Node) *pb.ExternalGrpcNode {
	return &pb.ExternalGrpcNode{ProviderID: node.Spec.ProviderID, Name: node.Name, Labels: node.Labels, Annotations: node.Annotations}
}
