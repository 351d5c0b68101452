// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"
	"sync/atomic"
)

// severed is a connection that ends once and for all.
type severed struct {
	cut  atomic.Bool
	once sync.Once
	done chan struct{}

	ice sync.Mutex
	// thaw is closed when the connection continues; nil while it is not frozen.
	thaw chan struct{}
}

// Freeze stops the connection until Thaw, as if the process or its machine were stopped. What the
// process was about to send is sent afterwards and takes effect, however long that took and
// whatever the caller's deadline.
func (s *severed) Freeze() {
	s.ice.Lock()
	defer s.ice.Unlock()
	if s.thaw == nil {
		s.thaw = make(chan struct{})
	}
}

// Thaw ends a Freeze.
func (s *severed) Thaw() {
	s.ice.Lock()
	defer s.ice.Unlock()
	if s.thaw != nil {
		close(s.thaw)
		s.thaw = nil
	}
}

// stands waits while the connection is frozen.
func (s *severed) stands() {
	s.ice.Lock()
	thaw := s.thaw
	s.ice.Unlock()
	if thaw == nil {
		return
	}
	select {
	case <-thaw:
	case <-s.done:
	}
}

// Cut ends the connection for good: no request takes effect any more, and watches break. Unlike the
// Server's methods, it may be called from a hook.
func (s *severed) Cut() {
	s.once.Do(func() {
		s.cut.Store(true)
		close(s.done)
	})
}
