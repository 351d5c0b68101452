// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// namedFor is how long a machine counts as named after its name has left the annotation. machine-controller-manager takes it out
	// when it sees the machine terminate, and our store of Machines may be that much behind.
	namedFor = time.Minute
	// stuckAfter is how long a Node may keep its reserve mark after its Machine has lost it, until it counts as a member all
	// the same. A Node that is never a member makes the caller shrink the group and do nothing else, after 15 minutes and
	// in every loop.
	stuckAfter = 10 * time.Minute
	// unseenFor is how long our own write may be missing from the informer until its watch counts as broken.
	unseenFor = 30 * time.Second
)

// recent remembers machines whose names were in the annotation for deletion.
type recent struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// note names that are there now, and forget others that have not been for long.
func (r *recent) note(all map[string]time.Time, now time.Time) {
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

func (r *recent) has(name string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.last[name]
	return ok && now.Sub(at) < namedFor
}

// freed remembers since when Machines are known to be free of the mark that their Nodes still carry.
type freed struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// stuck says that a Machine's Node has kept its mark for too long.
func (f *freed) stuck(machine string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since == nil {
		f.since = map[string]time.Time{}
	}
	since, ok := f.since[machine]
	if !ok {
		f.since[machine] = now
	}
	return ok && now.Sub(since) >= stuckAfter
}

func (f *freed) forget(machine string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, machine)
}

func (f *freed) forgetIf(gone func(string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.since, func(machine string, _ time.Time) bool { return gone(machine) })
}

// shown remembers the last Node of each group that could be its template: what a group without Nodes looks like.
type shown struct {
	mu   sync.Mutex
	last map[string]model
}

// model is a Node and the class it was made of.
type model struct {
	node  *corev1.Node
	class string
}

func (s *shown) note(group string, m model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]model{}
	}
	s.last[group] = m
}

// of is the Node last seen of a group, nil where it had none of its present class.
func (s *shown) of(group, class string) *corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.last[group]; ok && m.class == class {
		return m.node
	}
	return nil
}

func (s *shown) forgetIf(gone func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last, func(group string, _ model) bool { return gone(group) })
}
