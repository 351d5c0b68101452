// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

const (
	// repeats of each call that reads, and of each that writes.
	readRepeats, writeRepeats = 3000, 300
)

// caller calls as cluster-autoscaler does: one call after the other.
type caller struct {
	pb.CloudProviderClient
	fleet
}

type method struct {
	name string
	call func(ctx context.Context, i int) error
}

func (c caller) node(i int) *pb.ExternalGrpcNode {
	name := nodeName(i % c.nodes)
	return &pb.ExternalGrpcNode{Name: name, ProviderID: "virtual:///" + name, Labels: map[string]string{"kubernetes.io/hostname": name}}
}

func (c caller) readers() []method {
	group := func(i int) string { return groupName(i % c.groups) }
	return []method{
		{"Refresh", func(ctx context.Context, _ int) error { _, err := c.Refresh(ctx, &pb.RefreshRequest{}); return err }},
		{"NodeGroups", func(ctx context.Context, _ int) error {
			_, err := c.NodeGroups(ctx, &pb.NodeGroupsRequest{})
			return err
		}},
		{"NodeGroupForNode", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupForNode(ctx, &pb.NodeGroupForNodeRequest{Node: c.node(i)})
			return err
		}},
		{"TargetSize", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: group(i)})
			return err
		}},
		{"Nodes", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupNodes(ctx, &pb.NodeGroupNodesRequest{Id: group(i)})
			return err
		}},
		{"TemplateNodeInfo", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupTemplateNodeInfo(ctx, &pb.NodeGroupTemplateNodeInfoRequest{Id: group(i)})
			return err
		}},
		{"GetOptions", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupGetOptions(ctx, &pb.NodeGroupAutoscalingOptionsRequest{Id: group(i)})
			if status.Code(err) == codes.Unimplemented {
				return nil
			}
			return err
		}},
	}
}

func (c caller) reading(ctx context.Context) error {
	fmt.Printf("%d nodes in %d groups\n\n%-20s %8s %10s %10s\n", c.nodes, c.groups, "call", "times", "p50", "p99")
	readers := c.readers()
	for _, m := range readers {
		if err := c.time(ctx, m, readRepeats); err != nil {
			return err
		}
	}
	return c.loop(ctx, readers)
}

// loop makes the calls of one loop: four GetOptions and one NodeGroupForNode for each Node, three
// TargetSize for each group.
func (c caller) loop(ctx context.Context, readers []method) error {
	times := map[string]int{"Refresh": 1, "NodeGroups": 1, "NodeGroupForNode": c.nodes, "GetOptions": 4 * c.nodes, "TargetSize": 3 * c.groups, "Nodes": c.groups}
	calls, begun := 0, time.Now()
	for _, m := range readers {
		for i := range times[m.name] {
			if err := m.call(ctx, i); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			calls++
		}
	}
	fmt.Printf("\na whole loop: %d calls in %v\n", calls, time.Since(begun).Round(time.Millisecond))
	return nil
}

// writing measures calls that write, beside the patch that they make, made directly.
func (c caller) writing(ctx context.Context) error {
	fmt.Printf("\n%-20s %8s %10s %10s\n", "call", "times", "p50", "p99")
	for _, m := range []method{
		{"floor: one patch", func(ctx context.Context, i int) error {
			body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, i)
			_, err := c.ours.MachineDeployments(namespace).Patch(ctx, groupName(0), types.MergePatchType, body, metav1.PatchOptions{})
			return err
		}},
		{"IncreaseSize", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupIncreaseSize(ctx, &pb.NodeGroupIncreaseSizeRequest{Id: groupName(1 % c.groups), Delta: 1})
			return err
		}},
		{"DeleteNodes", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: groupName(c.of(i)), Nodes: []*pb.ExternalGrpcNode{c.node(i)}})
			return err
		}},
		{"DecreaseTargetSize", func(ctx context.Context, i int) error {
			_, err := c.NodeGroupDecreaseTargetSize(ctx, &pb.NodeGroupDecreaseTargetSizeRequest{Id: groupName(1 % c.groups), Delta: -1})
			return err
		}},
	} {
		if err := c.time(ctx, m, writeRepeats); err != nil {
			return err
		}
	}
	return nil
}

func (c caller) time(ctx context.Context, m method, times int) error {
	took := make([]time.Duration, times)
	for i := range times {
		begun := time.Now()
		if err := m.call(ctx, i); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	fmt.Printf("%-20s %8d %10v %10v\n", m.name, times, took[times/2].Round(time.Microsecond), took[times*99/100].Round(time.Microsecond))
	return nil
}
