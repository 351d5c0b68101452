// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// maxReads limits how many machines are read concurrently.
const maxReads = 10

// confirmed returns the members, with those to delete as the API server has them now. The watch of
// Machines may be late by any time, also after a restart. If it still shows a machine that
// terminates and whose name machine-controller-manager has removed, replicas would be lowered for
// it a second time, and another machine would be deleted.
//
// What is read here is no older than the MachineDeployment of the decision, so one of the two shows
// each removal.
func (s *Server) confirmed(ctx context.Context, members []Member, going map[string]bool) ([]Member, error) {
	errs := make([]error, len(members))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), maxReads, len(members), func(i int) {
		if m := &members[i]; going[m.Name()] && !m.Leaving() {
			errs[i] = s.confirm(ctx, m)
		}
	})
	return members, errors.Join(errs...)
}

// confirm updates a member with its Machine from the API server.
func (s *Server) confirm(ctx context.Context, member *Member) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := s.clients.Machines.Machines(s.options.Namespace).Get(ctx, member.Name(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		member.Gone = true
	case err != nil:
		return status.Errorf(codes.Unavailable, "read machine %s: %v", member.Name(), err)
	default:
		member.Object, member.Named = live, member.Named || signs.Condemned(live)
		member.Preserved = pool.Preserved(live, s.options.Clock.Now())
	}
	return nil
}
