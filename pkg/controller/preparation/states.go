// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// States says how far the preparation of machines is. The zero value has none.
type States struct {
	mu          sync.Mutex
	progress    map[types.UID]plan.Progress
	subscribers []func(machines []types.UID)
}

// Of returns how far a machine is, and false if nothing is to be prepared there.
func (s *States) Of(machine types.UID) (plan.Progress, bool) {
	if s == nil {
		return plan.Progress{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.progress[machine]
	return p, known
}

// Subscribe makes States call changed with the machines whose progress has changed. changed must not block.
func (s *States) Subscribe(changed func(machines []types.UID)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, changed)
}

// set replaces what is known.
func (s *States) set(progress map[types.UID]plan.Progress) {
	s.mu.Lock()
	var changed []types.UID
	for uid, is := range progress {
		if was, known := s.progress[uid]; !known || !same(was, is) {
			changed = append(changed, uid)
		}
	}
	for uid := range s.progress {
		if _, still := progress[uid]; !still {
			changed = append(changed, uid)
		}
	}
	s.progress = maps.Clone(progress)
	subscribers := s.subscribers
	s.mu.Unlock()
	if len(changed) == 0 {
		return
	}
	for _, call := range subscribers {
		call(changed)
	}
}

// same reports whether two states look the same from outside.
func same(a, b plan.Progress) bool {
	if (a.Failure == nil) != (b.Failure == nil) || a.Failure != nil && *a.Failure != *b.Failure {
		return false
	}
	return a.Wishes == b.Wishes && a.Done == b.Done
}
