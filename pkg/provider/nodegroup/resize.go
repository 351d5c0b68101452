// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
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
