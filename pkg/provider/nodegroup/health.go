// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// remindEvery is how often the server checks for named machines that still exist.
const remindEvery = 10 * time.Second

// runReminders repeats the deletion of named machines until ctx ends.
func (s *Server) runReminders(ctx context.Context) {
	ticker := s.options.Clock.NewTicker(remindEvery)
	defer ticker.Stop()
	for {
		s.memory.forget()
		s.repeatDeletions()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// repeatDeletions asks again for the deletion of named machines that still exist.
func (s *Server) repeatDeletions() {
	for _, g := range s.memory.allGroups() {
		if len(pool.Named(g.Deployment)) == 0 {
			continue
		}
		err := s.change(s.life, g.Deployment.Name, func(_ context.Context, g plan.Group) (plan.Change, error) {
			return plan.NewReminder(g, s.memory.liveMachines(g), s.options.Clock.Now()), nil
		})
		if err != nil {
			klog.FromContext(s.life).Info("Cannot repeat the request to delete named machines", "group", g.Deployment.Name, "because", err)
		}
	}
}

// healthError returns why answers may be wrong, and nil if all is well.
func (s *Server) healthError() error {
	errs := []error{s.options.Control.Err(s.memory.deployments, s.memory.kinds.Machines), s.options.Target.Err(s.memory.kinds.Nodes)}
	if key := s.memory.written.Behind(unseenFor); key != "" {
		errs = append(errs, fmt.Errorf("the watch of MachineDeployments does not show the last write to %s", key))
	}
	for _, name := range slices.Sorted(maps.Keys(s.options.Healthy)) {
		if err := s.options.Healthy[name](); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
