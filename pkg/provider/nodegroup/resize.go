// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// maxAttempts bounds how often a call decides again because of a concurrent write. A client
	// that writes as fast as it can wins most attempts, but not all of these. The duration of the
	// call is bounded, too.
	maxAttempts = 200
	// usualBudget is how long a call without a deadline may take; longestBudget applies to a call
	// with a distant one.
	usualBudget, longestBudget = 4 * time.Second, 10 * time.Second
	// requestTimeout is how long one request to the API server may take. After that, the outcome is
	// read.
	requestTimeout = 2 * time.Second
	// retryDelay is the delay before the next request to an API server that did not answer.
	retryDelay = 100 * time.Millisecond
)

// NodeGroupIncreaseSize raises replicas, within max, to the number that the caller expects.
func (s *Server) NodeGroupIncreaseSize(ctx context.Context, request *pb.NodeGroupIncreaseSizeRequest) (*pb.NodeGroupIncreaseSizeResponse, error) {
	err := s.change(ctx, request.GetId(), func(_ context.Context, g plan.Group) (plan.Change, error) {
		return plan.NewRaise(g, s.memory.callerView.replicasOf(request.GetId(), g.Replicas()), request.GetDelta())
	})
	if err != nil {
		return nil, err
	}
	return &pb.NodeGroupIncreaseSizeResponse{}, nil
}

// NodeGroupDeleteNodes names machines for deletion, and lowers replicas by those that serve.
func (s *Server) NodeGroupDeleteNodes(ctx context.Context, request *pb.NodeGroupDeleteNodesRequest) (*pb.NodeGroupDeleteNodesResponse, error) {
	err := s.change(ctx, request.GetId(), func(ctx context.Context, g plan.Group) (plan.Change, error) {
		going, unknown, err := s.memory.machinesToDelete(g, request.GetNodes())
		if err == nil {
			err = s.confirmGone(ctx, unknown)
		}
		if err != nil {
			return plan.Change{}, err
		}
		read := s.memory.snapshot(g)
		members, err := s.confirmed(ctx, s.memory.members(read), going)
		if err == nil {
			err = checkPlaceholders(members, request.GetNodes())
		}
		if err != nil {
			return plan.Change{}, err
		}
		return plan.NewRemoval(g, members, read.Rollout.Spread, going, s.options.Clock.Now())
	})
	if err != nil {
		return nil, err
	}
	return &pb.NodeGroupDeleteNodesResponse{}, nil
}

// NodeGroupDecreaseTargetSize withdraws what does not exist yet.
func (s *Server) NodeGroupDecreaseTargetSize(ctx context.Context, request *pb.NodeGroupDecreaseTargetSizeRequest) (*pb.NodeGroupDecreaseTargetSizeResponse, error) {
	if request.GetDelta() >= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "lower %s by %d: must be -1 or less", request.GetId(), request.GetDelta())
	}
	err := s.change(ctx, request.GetId(), func(ctx context.Context, g plan.Group) (plan.Change, error) {
		members, err := s.withUnseen(ctx, g, s.memory.members(s.memory.outline(g)))
		if err != nil {
			klog.FromContext(ctx).Info("Withdrew nothing, because machines could not be read", "error", err)
			return plan.Change{From: g.Replicas(), To: g.Replicas()}, nil // the caller asks again
		}
		return plan.NewWithdrawal(g, members, request.GetDelta()), nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.NodeGroupDecreaseTargetSizeResponse{}, nil
}

// change decides and writes until a write has been answered. It continues after the caller has
// given up, so that the outcome is known here.
func (s *Server) change(caller context.Context, id string, decide func(context.Context, plan.Group) (plan.Change, error)) error {
	if _, err := s.memory.findGroup(id); err != nil {
		return err
	}
	ctx := klog.NewContext(s.life, klog.FromContext(s.life).WithValues("group", id))
	ctx, cancel := context.WithTimeout(ctx, budget(caller, s.options.Clock.Now()))
	defer cancel()
	leave, err := s.locks.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	for range maxAttempts {
		g, err := s.memory.findGroup(id)
		if err != nil {
			return err
		}
		c, err := decide(ctx, g)
		if err != nil {
			return err
		}
		done := c.IsEmpty()
		if !done {
			done, err = s.writeChange(ctx, g.Deployment, c)
		}
		switch {
		case err != nil:
			return err
		case done:
			s.memory.callerView.addChange(id, c.CallerDelta, g.Deployment.ResourceVersion)
			return nil
		}
	}
	return status.Errorf(codes.Aborted, "change %s: too many conflicts with other writers", id)
}

// budget leaves some time for the answer to reach the caller.
func budget(caller context.Context, now time.Time) time.Duration {
	deadline, ok := caller.Deadline()
	if !ok {
		return usualBudget
	}
	return min(deadline.Sub(now)/5*4, longestBudget) // divided first: a deadline may be centuries away
}

// writeChange sends one patch, and determines its outcome if the answer is lost. It reports false
// if the patch did not take effect and the decision must be made again.
func (s *Server) writeChange(ctx context.Context, base *v1alpha1.MachineDeployment, c plan.Change) (done bool, err error) {
	body, err := mergePatch(c, base)
	if err != nil {
		return false, status.Errorf(codes.Internal, "encode patch: %v", err)
	}
	lost := false
	for {
		after, err := s.sendPatch(ctx, base.Name, body)
		switch {
		case err == nil:
			s.memory.recordWrite(after)
			klog.FromContext(ctx).V(2).Info("Changed replicas", "from", c.From, "to", c.To, "named", c.Names)
			return true, nil
		case written.Outcome(err) == written.Refused && !lost:
			return false, grpcError(base.Name, err)
		}
		lost = lost || written.Outcome(err) == written.Unknown
		live, unread := s.readDeployment(ctx, base.Name)
		switch {
		case unread == nil && live.ResourceVersion != base.ResourceVersion:
			s.memory.recordWrite(live)
			return c.ResolveOutcome(base, live, lost)
		case unread != nil && written.Answered(unread): // it is gone
			return false, grpcError(base.Name, unread)
		}
		// The outcome is unknown, or nothing has happened yet. The same patch takes effect once,
		// however often it is sent.
		if s.waitToRetry(ctx) != nil {
			return false, status.Errorf(codes.Unavailable, "change %s: %v; it may still take effect", base.Name, err)
		}
	}
}

// sendPatch makes one attempt. A server that hangs must not use up all the time.
func (s *Server) sendPatch(ctx context.Context, name string, body []byte) (*v1alpha1.MachineDeployment, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.clients.Machines.MachineDeployments(s.options.Namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
}

func (s *Server) readDeployment(ctx context.Context, name string) (*v1alpha1.MachineDeployment, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.clients.Machines.MachineDeployments(s.options.Namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s *Server) waitToRetry(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.options.Clock.After(retryDelay):
		return nil
	}
}

// grpcError returns the gRPC error for an error of the API server.
func grpcError(name string, err error) error {
	code := codes.FailedPrecondition
	switch {
	case apierrors.IsNotFound(err):
		code = codes.NotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		code = codes.PermissionDenied
	}
	return status.Errorf(code, "change %s: %v", name, err)
}

// maxReads limits how many machines are read concurrently.
const maxReads = 10

// confirmGone returns an error unless the machines of these Nodes no longer exist, so that nothing
// remains to be done for them. The stores do not show them, but those of a process that has just
// started may be older than the machines.
func (s *Server) confirmGone(ctx context.Context, nodes []*pb.ExternalGrpcNode) error {
	errs := make([]error, len(nodes))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), maxReads, len(nodes), func(i int) {
		if there, err := s.hasMachine(ctx, nodes[i]); err != nil {
			errs[i] = status.Errorf(codes.Unavailable, "read the machine of node %s: %v", nodes[i].GetName(), err)
		} else if there {
			errs[i] = status.Errorf(codes.Unavailable, "the machine of node %s is not known yet", nodes[i].GetName())
		}
	})
	return errors.Join(errs...)
}

// hasMachine reports whether the API server has a Machine of a Node.
func (s *Server) hasMachine(ctx context.Context, node *pb.ExternalGrpcNode) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	machines := s.clients.Machines.Machines(s.options.Namespace)
	if name, ok := strings.CutPrefix(cmp.Or(node.GetProviderID(), node.GetName()), plan.Placeholder); ok {
		_, err := machines.Get(ctx, name, metav1.GetOptions{})
		return err == nil, written.IgnoreNotFound(err)
	}
	if node.GetName() == "" {
		return hasInstance(ctx, machines, node.GetProviderID())
	}
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{mcm.NodeLabelKey: node.GetName()})
	if err != nil {
		return false, nil // no Machine can have this label
	}
	list, err := machines.List(ctx, metav1.ListOptions{LabelSelector: selector.String(), Limit: 1})
	return err == nil && len(list.Items) > 0, err
}

// hasInstance reports whether the API server has a Machine of a provider id.
func hasInstance(ctx context.Context, machines machineclient.MachineInterface, providerID string) (bool, error) {
	list, err := machines.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	id := pool.InstanceID(providerID)
	return slices.ContainsFunc(list.Items, func(m mcm.Machine) bool { return id != "" && pool.InstanceID(m.Spec.ProviderID) == id }), nil
}

// confirmed returns the members, with those to delete as the API server has them now. The watch of
// Machines may be late by any time, also after a restart. If it still shows a machine that
// terminates and whose name machine-controller-manager has removed, replicas would be lowered for
// it a second time, and another machine would be deleted.
//
// What is read here is no older than the MachineDeployment of the decision, so one of the two shows
// each removal.
func (s *Server) confirmed(ctx context.Context, members []plan.Member, going map[string]bool) ([]plan.Member, error) {
	errs := make([]error, len(members))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), maxReads, len(members), func(i int) {
		if m := &members[i]; going[m.Name()] && !m.Leaving() {
			errs[i] = s.confirm(ctx, m)
		}
	})
	return members, errors.Join(errs...)
}

// confirm updates a member with its Machine from the API server.
func (s *Server) confirm(ctx context.Context, member *plan.Member) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := s.clients.Machines.Machines(s.options.Namespace).Get(ctx, member.Name(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		member.Gone = true
	case err != nil:
		return status.Errorf(codes.Unavailable, "read machine %s: %v", member.Name(), err)
	default:
		member.Object, member.Named = live, pool.Condemned(live) // it was not named, or it would be leaving
		member.Preserved = pool.Preserved(live, s.options.Clock.Now())
		member.Node = pool.NodeOf(live, s.memory.source)
	}
	return nil
}

// checkPlaceholders returns an error if a call deletes a machine as one without a Node that has one
// by now. The caller lists machines every two minutes, and deletes those that have not registered for
// a long time: it knows nothing of the pods that may run on this one.
func checkPlaceholders(members []plan.Member, nodes []*pb.ExternalGrpcNode) error {
	listed := map[string]bool{}
	for _, node := range nodes {
		listed[cmp.Or(node.GetName(), node.GetProviderID())] = true
	}
	for _, m := range members {
		if id := instanceID(m); listed[plan.Placeholder+m.Name()] && id != plan.Placeholder+m.Name() && !m.Leaving() {
			return status.Errorf(codes.FailedPrecondition, "remove machine %s: it has registered since, as %s", m.Name(), id)
		}
	}
	return nil
}

// withUnseen adds the machines of a group that the API server has and the stores do not show yet.
// The watch of Machines may be late by any time. Without these machines, replicas would be withdrawn
// that have them, and machine-controller-manager would delete as many, perhaps others that serve.
func (s *Server) withUnseen(ctx context.Context, g plan.Group, members []plan.Member) ([]plan.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	selector, err := metav1.LabelSelectorAsSelector(g.Deployment.Spec.Selector)
	if err != nil {
		selector = labels.Everything()
	}
	list, err := s.clients.Machines.Machines(s.options.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		m := &list.Items[i]
		known := slices.ContainsFunc(members, func(one plan.Member) bool { return one.Name() == m.Name })
		if !known && s.memory.mayOwn(g, m) {
			members = append(members, plan.Member{Machine: pool.Machine{Object: m, Named: pool.Condemned(m)}})
		}
	}
	return members, nil
}

// mergePatch returns a change as one merge patch that takes effect only on the version that it was
// decided on.
func mergePatch(c plan.Change, base *v1alpha1.MachineDeployment) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": base.ResourceVersion, "uid": base.UID}
	if len(c.Annotations) > 0 {
		metadata["annotations"] = annotationsOf(c.Annotations)
	}
	body := map[string]any{"metadata": metadata}
	if c.From != c.To {
		body["spec"] = map[string]any{"replicas": c.Replicas}
	}
	return json.Marshal(body)
}

// annotationsOf has null, which removes an annotation, for an empty value.
func annotationsOf(set map[string]string) map[string]any {
	annotations := map[string]any{}
	for key, value := range set {
		if annotations[key] = value; value == "" {
			annotations[key] = nil
		}
	}
	return annotations
}

// groupLocks let one call at a time write to each group. The patches of concurrent calls, such as
// deletions, would only conflict. A lock exists while a call uses it.
type groupLocks struct {
	mu      sync.Mutex
	byGroup map[string]*groupLock
}

type groupLock struct {
	held chan struct{}
	// calls counts the waiting ones and the one that writes.
	calls int
}

// acquire waits until no other call writes to the group.
func (g *groupLocks) acquire(ctx context.Context, id string) (leave func(), err error) {
	at := g.reference(id)
	select {
	case at.held <- struct{}{}:
		return func() { <-at.held; g.dereference(id) }, nil
	case <-ctx.Done():
		g.dereference(id)
		return nil, status.Errorf(codes.Unavailable, "change %s: too many other changes are in progress", id)
	}
}

// reference counts one more call that uses the lock of a group, and returns the lock.
func (g *groupLocks) reference(id string) *groupLock {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byGroup == nil {
		g.byGroup = map[string]*groupLock{}
	}
	if g.byGroup[id] == nil {
		g.byGroup[id] = &groupLock{held: make(chan struct{}, 1)}
	}
	g.byGroup[id].calls++
	return g.byGroup[id]
}

func (g *groupLocks) dereference(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byGroup[id].calls--; g.byGroup[id].calls == 0 {
		delete(g.byGroup, id)
	}
}
