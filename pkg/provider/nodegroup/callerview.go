// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"maps"
	"sync"

	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// callerView contains the replicas of each group that the caller expects: those when its loop
// began, with its own changes since.
type callerView struct {
	mu       sync.Mutex
	replicas map[string]int32
}

// startLoop notes the replicas at the start of a loop of the caller.
func (s *callerView) startLoop(groups []plan.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = make(map[string]int32, len(groups))
	for _, g := range groups {
		s.replicas[g.Deployment.Name] = g.Replicas()
	}
}

// replicasOf returns the expected replicas of a group, at most the present ones.
func (s *callerView) replicasOf(group string, now int32) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, ok := s.replicas[group]; ok {
		return min(seen, now)
	}
	return now
}

// addChange adds a change that the caller made.
func (s *callerView) addChange(group string, by int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.replicas[group]; ok {
		s.replicas[group] += by
	}
}

func (s *callerView) forgetIf(gone func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.replicas, func(group string, _ int32) bool { return gone(group) })
}
