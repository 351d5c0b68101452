// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmcodes "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// DefaultGPULabel is the label of Nodes with graphics processors in Gardener's clusters.
const DefaultGPULabel = "gardener.cloud/accelerator"

// Clients of the two clusters.
type Clients struct {
	Machines machineclient.MachineV1alpha1Interface
}

// Informers of the two clusters. Machines are those of [Options.Namespace].
type Informers struct {
	Machines *stores.Informers
	Target   *target.Informers
}

// Options of a Server.
type Options struct {
	// Namespace holds the MachineDeployments.
	Namespace string
	// GPULabel is the label of Nodes with GPUs for cluster-autoscaler.
	GPULabel string
	// Reserved is what a machine reserves, for groups that have had no Node yet. For other
	// resources, an estimate is used.
	Reserved corev1.ResourceList
	// Control and Target report whether the two clusters answer. If nil, they are assumed to answer.
	Control, Target *reachability.Cluster
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Registerer takes the metrics; nil takes none.
	Registerer prometheus.Registerer
}

// Server serves cluster-autoscaler. Its methods may be called once the caches are filled.
type Server struct {
	pb.UnimplementedCloudProviderServer
	clients Clients
	options Options
	memory  *memory
	synced  []cache.DoneChecker
	locks   groupLocks
	metrics metrics
	// life ends everything in progress. It is set while Run runs.
	life context.Context
}

// New returns a server. Start the informers after New.
func New(c Clients, i Informers, o Options) (*Server, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	s := &Server{clients: c, options: o, metrics: newMetrics(o.Registerer), life: context.Background()}
	attach := func(informer cache.SharedIndexInformer) cache.Indexer {
		s.synced = append(s.synced, informer.HasSyncedChecker())
		return informer.GetIndexer()
	}
	kinds := stores.Kinds{
		Sets: attach(i.Machines.Sets()), Machines: attach(i.Machines.Machines()), Classes: attach(i.Machines.Classes()), Nodes: attach(i.Target.Nodes()),
	}
	deployments := attach(i.Machines.Deployments())
	s.memory = &memory{
		namespace: o.Namespace, clock: o.Clock, deployments: deployments, kinds: kinds, source: &stores.Source{Kinds: kinds},
		written: written.NewCache[*v1alpha1.MachineDeployment](deployments, o.Clock),
	}
	if err := s.memory.addHandlers(i.Machines.Deployments(), i.Target.Nodes()); err != nil {
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	return s, nil
}

// Refresh begins each loop of the caller. It is the only call whose error just ends the loop.
func (s *Server) Refresh(context.Context, *pb.RefreshRequest) (*pb.RefreshResponse, error) {
	if err := s.healthError(); err != nil {
		return nil, status.Errorf(codes.Unavailable, "not healthy: %v", err)
	}
	s.memory.callerView.startLoop(s.memory.allGroups)
	return &pb.RefreshResponse{}, nil
}

// NodeGroups returns all MachineDeployments with bounds.
func (s *Server) NodeGroups(context.Context, *pb.NodeGroupsRequest) (*pb.NodeGroupsResponse, error) {
	response := &pb.NodeGroupsResponse{}
	for _, g := range s.memory.allGroups() {
		response.NodeGroups = append(response.NodeGroups, message(g))
	}
	return response, nil
}

// NodeGroupForNode returns a group without an id for a Node without a group.
func (s *Server) NodeGroupForNode(_ context.Context, request *pb.NodeGroupForNodeRequest) (*pb.NodeGroupForNodeResponse, error) {
	g, ok := s.memory.groupOfNode(request.GetNode())
	if !ok {
		return &pb.NodeGroupForNodeResponse{NodeGroup: &pb.NodeGroup{}}, nil
	}
	return &pb.NodeGroupForNodeResponse{NodeGroup: message(g)}, nil
}

// NodeGroupTargetSize returns the replicas of a group.
func (s *Server) NodeGroupTargetSize(_ context.Context, request *pb.NodeGroupTargetSizeRequest) (*pb.NodeGroupTargetSizeResponse, error) {
	g, err := s.memory.findGroup(request.GetId())
	if err != nil {
		return nil, err
	}
	return &pb.NodeGroupTargetSizeResponse{TargetSize: g.Replicas()}, nil
}

// NodeGroupNodes returns the machines of a group that are not in reserve.
func (s *Server) NodeGroupNodes(_ context.Context, request *pb.NodeGroupNodesRequest) (*pb.NodeGroupNodesResponse, error) {
	g, err := s.memory.findGroup(request.GetId())
	if err != nil {
		return nil, err
	}
	return &pb.NodeGroupNodesResponse{Instances: s.memory.instances(g)}, nil
}

// NodeGroupTemplateNodeInfo returns Unimplemented if no node template is known: with an empty
// answer, the caller would crash, and any other error ends its loop.
func (s *Server) NodeGroupTemplateNodeInfo(_ context.Context, request *pb.NodeGroupTemplateNodeInfoRequest) (*pb.NodeGroupTemplateNodeInfoResponse, error) {
	g, err := s.memory.findGroup(request.GetId())
	if err != nil {
		return nil, err
	}
	node, ok := s.memory.template(g, s.options.Reserved)
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "no node template known for %s: it has not had a Node yet, and its MachineClass has no nodeTemplate", g.Deployment.Name)
	}
	body, err := node.Marshal()
	if err != nil {
		return nil, status.Errorf(codes.Unimplemented, "template of %s: %v", g.Deployment.Name, err)
	}
	return &pb.NodeGroupTemplateNodeInfoResponse{NodeBytes: body}, nil
}

// GPULabel returns the label of Nodes with GPUs.
func (s *Server) GPULabel(context.Context, *pb.GPULabelRequest) (*pb.GPULabelResponse, error) {
	return &pb.GPULabelResponse{Label: s.options.GPULabel}, nil
}

// GetAvailableGPUTypes returns nothing: the types are unknown.
func (s *Server) GetAvailableGPUTypes(context.Context, *pb.GetAvailableGPUTypesRequest) (*pb.GetAvailableGPUTypesResponse, error) {
	return &pb.GetAvailableGPUTypesResponse{}, nil
}

// Cleanup has nothing to do.
func (s *Server) Cleanup(context.Context, *pb.CleanupRequest) (*pb.CleanupResponse, error) {
	return &pb.CleanupResponse{}, nil
}

// NodeGroupGetOptions is intentionally unimplemented. The caller takes options as a whole, and the
// protocol lacks one of them. It would be 0, and every booting Node would count as broken.
func (s *Server) NodeGroupGetOptions(context.Context, *pb.NodeGroupAutoscalingOptionsRequest) (*pb.NodeGroupAutoscalingOptionsResponse, error) {
	return nil, status.Error(codes.Unimplemented, "options are set by the flags of cluster-autoscaler")
}

// Classes of errors that cluster-autoscaler distinguishes.
const (
	classExhausted int32 = 1
	classOther     int32 = 99
)

// maxErrorText is the length of an error message in characters. The caller shows no more, and takes
// no answer of more than 4 MiB: it would do nothing for the whole cluster.
const maxErrorText = 500

// message returns a group for the protocol. It always has both bounds, since the caller takes them
// from any answer, and could empty a group without a min.
func message(g plan.Group) *pb.NodeGroup {
	return &pb.NodeGroup{
		Id: g.Deployment.Name, MinSize: g.Bounds.Min, MaxSize: g.Max(),
		Debug: fmt.Sprintf("MachineDeployment %s/%s, bounds %s", g.Deployment.Namespace, g.Deployment.Name, g.Bounds),
	}
}

// instance returns a machine for the protocol.
func instance(m plan.Member) *pb.Instance {
	status := &pb.InstanceStatus{}
	switch {
	case m.Leaving():
		status.InstanceState = pb.InstanceStatus_instanceDeleting
	case hasRegistered(m):
		status.InstanceState = pb.InstanceStatus_instanceRunning
	default:
		status.InstanceState, status.ErrorInfo = pb.InstanceStatus_instanceCreating, failure(m)
	}
	return &pb.Instance{Id: instanceID(m), Status: status}
}

// instanceID returns the provider id of a machine's Node, or a placeholder.
func instanceID(m plan.Member) string {
	if m.Node != nil && m.Node.Spec.ProviderID != "" {
		return m.Node.Spec.ProviderID
	}
	return plan.Placeholder + m.Name()
}

// hasRegistered reports whether the Node of a machine has ever registered.
func hasRegistered(m plan.Member) bool {
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return m.Node != nil
	}
	return true
}

// failure returns why a machine cannot be created. It is nil if machine-controller-manager tries
// again within seconds, because the caller would give up the group.
func failure(m plan.Member) *pb.InstanceErrorInfo {
	code, failed := pool.Failure(m.Object)
	if !failed {
		return nil
	}
	class := classOther
	if code == mcmcodes.ResourceExhausted {
		class = classExhausted
	}
	text := strings.ToValidUTF8(fmt.Sprintf("%.*s", maxErrorText, m.Object.Status.LastOperation.Description), "?")
	return &pb.InstanceErrorInfo{ErrorCode: code.String(), ErrorMessage: text, InstanceErrorClass: class}
}
