// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// namedFor is how long a machine counts as named after its name was removed from the annotation. machine-controller-manager removes it
	// when it sees the machine terminate, and our store of Machines may lag behind.
	namedFor = time.Minute
	// stuckAfter is how long a Node may keep its reserve mark after its Machine has lost it. Then it counts as a member all the same: for a
	// Node that is never a member, the caller shrinks the group in every loop after 15 minutes, and does nothing else.
	stuckAfter = 10 * time.Minute
	// unseenFor is how long our own write may be missing from the informer until its watch counts as broken.
	unseenFor = 30 * time.Second
)

// recent remembers machines whose names were in the annotation for deletion.
type recent struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// note adds the present names, and removes names that disappeared some time ago.
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

// freed remembers since when Machines have had no mark although their Nodes still carry it.
type freed struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// stuck reports whether a Machine's Node has kept its mark for too long.
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

// shown remembers the last Node of each group that could be its template, for the time when the group has no Node.
type shown struct {
	mu   sync.Mutex
	last map[string]model
}

// model is a Node and the class of its machine.
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

// of returns the last known Node of a group, nil if it had none of its present class.
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
