// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readers is how many machines are read at a time.
const readers = 10

// confirmed are the members with those that are to go as the API server has them now. The watch of Machines may be late by any
// time, after a restart as well. Where it still shows a machine whose name machine-controller-manager has taken out, because
// it terminates, replicas would be lowered for it a second time, and another machine would go.
//
// What is read here is no older than the MachineDeployment that the decision is made on, so one of the two shows each removal.
func (s *Server) confirmed(ctx context.Context, members []Member, going map[string]bool) ([]Member, error) {
	errs := make([]error, len(members))
	slots := make(chan struct{}, readers)
	var reading sync.WaitGroup
	for i := range members {
		if m := &members[i]; going[m.Name] && !m.Leaving {
			slots <- struct{}{}
			reading.Go(func() {
				m.Leaving, errs[i] = s.leaves(ctx, m)
				<-slots
			})
		}
	}
	reading.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return members, nil
}

// leaves reports whether a machine is gone or on its way out.
func (s *Server) leaves(ctx context.Context, member *Member) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, spell)
	defer cancel()
	m, err := s.clients.Machines.Machines(s.options.Namespace).Get(ctx, member.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, status.Errorf(codes.Unavailable, "read machine %s: %v", member.Name, err)
	}
	return leaves(m, member.Preserved), nil
}
