// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"
	"sync"
	"time"
)

// Effect is the effect of a write on an object; empty if it changed nothing.
type Effect string

// The effects of a write.
const (
	Added    Effect = "ADDED"
	Modified Effect = "MODIFIED"
	Deleted  Effect = "DELETED"
)

// Write is a write as hooks and the log show it.
type Write struct {
	Request
	// ResourceVersion is that of the object after the write, or of the event that removed the
	// object.
	ResourceVersion string
	Effect          Effect
	Time            time.Time
	// Server is the server's name, if it has one.
	Server string
	// Agent is the User-Agent of the client.
	Agent string
	// Object is what is stored after the write; for a removal, what was stored before. Only hooks
	// after a write get it, and they must not change it.
	Object map[string]any
}

// Journal contains the writes of several servers, in the order in which they took effect.
type Journal struct {
	mu     sync.Mutex
	writes []Write
}

// Writes returns all accepted writes so far.
func (j *Journal) Writes() []Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes[:len(j.writes):len(j.writes)]
}

// Forget drops the writes so far, for stories in which memory is measured.
func (j *Journal) Forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = nil
}

func (j *Journal) record(w Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, w)
}

// NoOp reports whether the write was accepted and changed nothing.
func (w Write) NoOp() bool { return w.Effect == "" }

func (s *Server) record(r *request, v *version, rv uint64, effect Effect) {
	w := Write{Request: r.Request, ResourceVersion: strconv.FormatUint(rv, 10), Effect: effect, Time: s.clock(), Server: s.name, Agent: r.agent}
	s.writes = append(s.writes, w)
	if s.journal != nil {
		s.journal.record(w)
	}
	w.Object = v.object
	for _, hook := range s.faults.after {
		if err := hook(w); err != nil {
			r.lost = err
		}
	}
}

// announce calls the hooks before a write.
func (s *Server) announce(r *request) error {
	if r.dryRun() {
		return nil
	}
	for _, hook := range s.faults.before {
		if err := hook(Write{Request: r.Request, Time: s.clock(), Server: s.name}); err != nil {
			return err
		}
	}
	return nil
}

// ForgetWrites drops the record of writes so far, like [Journal.Forget].
func (s *Server) ForgetWrites() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = nil
}

// Writes returns all accepted writes so far, in the order in which they took effect.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes[:len(s.writes):len(s.writes)]
}
