// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"maps"
	"sync"

	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// callerView contains the replicas of each group that the caller expects: those when its loop
// began, with its own changes since.
type callerView struct {
	mu     sync.Mutex
	groups map[string]expected
}

// expected is what the caller expects of a group, and the version of the MachineDeployment when its
// loop began.
type expected struct {
	replicas int32
	version  string
}

// startLoop notes the replicas at the start of a loop of the caller. They are read under the lock:
// a change that is answered meanwhile counts in the loop that begins, unless its version shows it.
func (s *callerView) startLoop(read func() []plan.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	groups := read()
	s.groups = make(map[string]expected, len(groups))
	for _, g := range groups {
		s.groups[g.Deployment.Name] = expected{g.Replicas(), g.Deployment.ResourceVersion}
	}
}

// replicasOf returns the expected replicas of a group, at most the present ones.
func (s *callerView) replicasOf(group string, now int32) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, ok := s.groups[group]; ok {
		return min(seen.replicas, now)
	}
	return now
}

// addChange adds a change that the caller made to a version of a group. A loop that began with a
// later version has seen the change: the caller deletes machines in the background, and the watch
// may show a write before it is answered.
func (s *callerView) addChange(group string, by int32, base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, ok := s.groups[group]; ok && written.Reached(base, seen.version) {
		seen.replicas += by
		s.groups[group] = seen
	}
}

func (s *callerView) forgetIf(gone func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.groups, func(group string, _ expected) bool { return gone(group) })
}
