// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	// probeEvery is how often both API servers are asked for one object, on nobody's behalf: a watch that is silent looks the
	// same whether nothing happens or nobody is there.
	probeEvery = 10 * time.Second
	// deafAfter is how long an API server may give no answer before nothing is done on what was heard of it.
	deafAfter = 30 * time.Second
)

// health remembers when each API server answered last.
type health struct {
	mu       sync.Mutex
	answered map[string]time.Time
}

func (h *health) note(name string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answered == nil {
		h.answered = map[string]time.Time{}
	}
	h.answered[name] = now
}

func (h *health) last(name string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered[name]
}

// probe is a small read that needs no more rights than the informers have.
type probe struct {
	name string
	ask  func(context.Context) error
}

func (s *Server) probes() []probe {
	one := metav1.ListOptions{Limit: 1}
	return []probe{
		{"control cluster", func(ctx context.Context) error {
			_, err := s.clients.Machines.MachineDeployments(s.options.Namespace).List(ctx, one)
			return err
		}},
		{"target cluster", func(ctx context.Context) error {
			_, err := s.clients.Target.CoreV1().Nodes().List(ctx, one)
			return err
		}},
	}
}

// filled is called when the caches are: that took an answer of both API servers.
func (s *Server) filled() {
	for _, p := range s.probes() {
		s.health.note(p.name, s.options.Clock.Now())
	}
}

// listen asks both API servers until ctx ends.
func (s *Server) listen(ctx context.Context) {
	ticker := s.options.Clock.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		for _, p := range s.probes() {
			s.ask(ctx, p)
		}
		s.remind()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// remind sees to machines that were named and do not go.
func (s *Server) remind() {
	for _, g := range s.memory.groups() {
		if len(names(g.Deployment)) == 0 {
			continue
		}
		err := s.change(s.life, g.Deployment.Name, func(g Group) (Change, error) {
			return NewReminder(g, s.memory.alive(g), s.options.Clock.Now()), nil
		})
		if err != nil {
			klog.FromContext(s.life).Info("Cannot remind of machines that are named for deletion", "group", g.Deployment.Name, "because", err)
		}
	}
}

func (s *Server) ask(ctx context.Context, p probe) {
	ctx, cancel := context.WithTimeout(ctx, probeEvery)
	defer cancel()
	if p.ask(ctx) == nil {
		s.health.note(p.name, s.options.Clock.Now())
	}
}

// sick says what keeps answers from being right, nil where nothing does.
func (s *Server) sick() error {
	var errs []error
	for _, p := range s.probes() {
		if s.options.Clock.Since(s.health.last(p.name)) > deafAfter {
			errs = append(errs, fmt.Errorf("%s: the API server has not answered for %s", p.name, deafAfter))
		}
	}
	if name := s.memory.behind(); name != "" {
		errs = append(errs, fmt.Errorf("the watch of MachineDeployments does not show what was written of %s", name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.options.Healthy)) {
		if err := s.options.Healthy[name](); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
