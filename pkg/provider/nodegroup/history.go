// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// namedFor is how long a machine counts as named after its name was removed from the annotation.
	// machine-controller-manager removes it when it sees the machine terminate, and our store of
	// Machines may lag behind.
	namedFor = time.Minute
	// stuckAfter is how long a Node may keep its reserve mark after its Machine has lost it, and how
	// long a machine is reported that cannot be created. Then the Node counts as a member all the
	// same, and the machine as one that has yet to register: for a Node that is never a member, and
	// for a failed machine that it cannot remove, the caller shrinks the group in every loop after 15
	// minutes, and does nothing else.
	stuckAfter = 10 * time.Minute
	// pauseFor is how long a group reports no failure after it has reported some for stuckAfter, of
	// whichever machines: the caller counts what is missing in a whole group, and what it has read of
	// the machines may be minutes old.
	pauseFor = 5 * time.Minute
	// unseenFor is how long our own write may be missing from the informer until its watch counts as
	// broken.
	unseenFor = 30 * time.Second
)

// recentNames remembers machines whose names were in the annotation for deletion.
type recentNames struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// addNames adds the present names, and removes names that disappeared some time ago.
func (r *recentNames) addNames(all map[string]time.Time, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	for name, at := range r.last {
		if now.Sub(at) >= namedFor {
			delete(r.last, name)
		}
	}
	for name := range all {
		r.last[name] = now
	}
}

func (r *recentNames) contains(name string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Sub(r.last[name]) < namedFor
}

// machineTimes remembers since when something has been true of Machines, or of the machines of a
// group.
type machineTimes struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// overdue reports whether it has been true of a Machine for too long.
func (t *machineTimes) overdue(machine string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since == nil {
		t.since = map[string]time.Time{}
	}
	since, ok := t.since[machine]
	if !ok {
		t.since[machine] = now
	}
	return ok && now.Sub(since) >= stuckAfter
}

// pausing is overdue until the pause has ended. Then the time begins anew.
func (t *machineTimes) pausing(group string, now time.Time) bool {
	t.mu.Lock()
	if since, ok := t.since[group]; ok && now.Sub(since) >= stuckAfter+pauseFor {
		delete(t.since, group)
	}
	t.mu.Unlock()
	return t.overdue(group, now)
}

func (t *machineTimes) forget(machine string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, machine)
}

func (t *machineTimes) forgetIf(gone func(string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.since, func(machine string, _ time.Time) bool { return gone(machine) })
}

// lastNodes remembers the last Node of each group that could be its template, for the time when the
// group has no Node.
type lastNodes struct {
	mu   sync.Mutex
	last map[string]templateNode
}

// templateNode is a Node and the class of its machine.
type templateNode struct {
	node  *corev1.Node
	class string
}

func (s *lastNodes) remember(group string, m templateNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]templateNode{}
	}
	s.last[group] = m
}

// nodeOf returns the last known Node of a group, nil if it had none of its present class.
func (s *lastNodes) nodeOf(group, class string) *corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.last[group]; m.class == class {
		return m.node
	}
	return nil
}

func (s *lastNodes) forgetIf(gone func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last, func(group string, _ templateNode) bool { return gone(group) })
}

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
