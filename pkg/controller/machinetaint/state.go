// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// states contains what the controller remembers of each MachineDeployment, besides what its stores
// show. Its lock is the only one of this package. While it is held, stores and caches of own writes
// may be read, which have locks of their own; neither of them calls back, and no request is sent.
type states struct {
	mu  sync.Mutex
	all map[string]*state
}

// state belongs to one MachineDeployment. Its methods are called under the lock of states.
type state struct {
	// memory is that of the last plan; nil if there is none.
	memory *plan.Memory
	// freedAt is when the last machine was released, until the deferred writes are done.
	freedAt time.Time
	// reportedAt is when the status was last written.
	reportedAt time.Time
	named      names
	// departed are reserve machines that no longer exist, with the time until which a client may
	// still name them.
	departed map[string]time.Time
	// listener wants to know of changes; nil if no batch is written.
	listener chan struct{}

	// The writes in progress; see guards.

	// resizes are the writes of replicas, by MachineSet.
	resizes map[string]*resize
	// removals are the deletions of Machines.
	removals map[types.UID]*removal
	// releases are the Machines that are leaving the reserve.
	releases map[types.UID]bool
	// doubts are those that put Machines into the reserve, and whose outcome is unknown.
	doubts map[types.UID]doubt
	// openings are those that open the Nodes of Machines in reserve, until the stores show that no
	// pods have come.
	openings map[types.UID]doubt
	// reduction is that of the number of machines that the MachineDeployment shows.
	reduction *reduction
}

func newStates() *states { return &states{all: map[string]*state{}} }

// locked calls f with the state of a MachineDeployment, which is empty if nothing is remembered of
// it, and forgets the state if it is empty afterwards.
func (s *states) locked(key string, f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.all[key]
	if !known {
		one = &state{}
	}
	f(one)
	switch {
	case one.isEmpty():
		delete(s.all, key)
	case !known:
		s.all[key] = one
	}
}

func (s *state) isEmpty() bool {
	return s.memory == nil && s.freedAt.IsZero() && s.listener == nil &&
		len(s.named.all)+len(s.departed)+len(s.resizes)+len(s.removals)+len(s.releases)+len(s.doubts)+len(s.openings) == 0 && s.reduction == nil
}

// memory returns the memory of the last plan, which is empty if there is none. What is left of another
// MachineDeployment of the same name is forgotten.
func (s *states) memory(d *v1alpha1.MachineDeployment, now time.Time) (m plan.Memory) {
	s.locked(keyOf(d), func(one *state) {
		if one.memory != nil && one.memory.UID != d.UID {
			one.forgetDeployment()
		}
		one.visible(0, now) // forgets a reduction of long ago
		one.forgetDeparted(now)
		m = one.lastMemory()
	})
	return m
}

func (s *state) lastMemory() plan.Memory {
	if s.memory == nil {
		return plan.Memory{}
	}
	return *s.memory
}

func (s *states) remember(key string, m plan.Memory) {
	s.locked(key, func(one *state) { one.memory = &m })
}

// noteFreed records that a machine was released.
func (s *states) noteFreed(key string, now time.Time) {
	s.locked(key, func(one *state) { one.freedAt = now })
}

// deferFor returns how long deferrable writes still wait after machines were released.
func (s *states) deferFor(key string, now time.Time) (left time.Duration) {
	s.locked(key, func(one *state) {
		if one.freedAt.IsZero() {
			return
		}
		if left = deferDelay - now.Sub(one.freedAt); left <= 0 {
			one.freedAt = time.Time{}
		}
	})
	return left
}

// forgetPlans removes what plans left behind, for a MachineDeployment that has no reserve.
func (s *states) forgetPlans(key string) {
	s.locked(key, func(one *state) {
		one.memory, one.freedAt, one.named, one.doubts, one.openings = nil, time.Time{}, names{}, nil, nil
	})
}

// forgetDeployment removes what belongs to a MachineDeployment that no longer exists. Writes of its
// MachineSets and Machines that are in progress end by themselves.
func (s *states) forgetDeployment(key string) {
	s.locked(key, (*state).forgetDeployment)
}

func (s *state) forgetDeployment() {
	s.memory, s.freedAt, s.named, s.departed, s.doubts, s.openings, s.reduction = nil, time.Time{}, names{}, nil, nil, nil, nil
}

// listen reports changes of a MachineDeployment until done is called. The queue cannot, because the
// key is being processed.
func (s *states) listen(key string) (changed <-chan struct{}, done func()) {
	listener := make(chan struct{}, 1)
	s.locked(key, func(one *state) { one.listener = listener })
	return listener, func() { s.locked(key, func(one *state) { one.listener = nil }) }
}

// notify wakes the listener of a MachineDeployment. If it has not received the last change yet, it
// receives both together.
func (s *states) notify(key string) {
	s.locked(key, func(one *state) {
		select {
		case one.listener <- struct{}{}: // blocks forever, so it is not chosen, if there is no listener
		default:
		}
	})
}

// forgetRemoval removes the deletion of a Machine, whose MachineSet may not be known any more.
func (s *states) forgetRemoval(machine types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.all {
		delete(one.removals, machine)
		if one.isEmpty() {
			delete(s.all, key)
		}
	}
}

// putEntry sets an entry of a map that may have to be made first: most MachineDeployments need
// none.
func putEntry[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// passed reports whether a time is set and over.
func passed(until, now time.Time) bool { return !until.IsZero() && now.After(until) }
