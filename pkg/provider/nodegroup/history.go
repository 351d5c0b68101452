// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
