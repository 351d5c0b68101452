// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"

	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

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
