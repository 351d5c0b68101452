// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// At one moment, a server takes this many requests to write one object, and this many to create
// objects of one kind by one client. No controller needs as many.
const (
	mostWrites  = 2000
	mostCreates = 20_000
)

// livelock detects that writes go on and on while no time passes, whatever their outcome. Virtual
// time would stop forever.
type livelock struct {
	moment time.Time
	counts map[target]int
}

// target is an object, or all objects of a kind that a client creates.
type target struct{ user, resource, namespace, name string }

// observe counts a request, and describes the livelock that it is part of, if any.
func (l *livelock) observe(r Request, now time.Time) string {
	if !now.Equal(l.moment) {
		l.moment = now
		clear(l.counts)
	}
	most, at := mostWrites, target{resource: r.Resource, namespace: r.Namespace, name: r.Name}
	if r.Name == "" {
		most, at.user = mostCreates, r.User
	}
	if l.counts == nil {
		l.counts = map[target]int{}
	}
	if l.counts[at]++; l.counts[at] < most {
		return ""
	}
	return fmt.Sprintf("livelock: %d writes of %s %s/%s within one moment (%s), the last one by %s: %s %s",
		most, r.Resource, r.Namespace, cmp.Or(r.Name, "*"), now.Format(time.RFC3339Nano), r.User, r.Verb, r.Subresource)
}

// errLivelock is the answer to a write that is part of a livelock.
var errLivelock = errors.New("too many writes within one moment")

// checkLivelock reports a livelock. The caller holds the lock.
func (s *Server) checkLivelock(r *request) error {
	if what := s.livelock.observe(r.Request, s.clock()); what != "" {
		s.endless(what + "\n\nThe last write comes from:\n" + string(debug.Stack()))
		return errLivelock
	}
	return nil
}

// EndProcess ends the test binary, because nothing in virtual time can end a livelock.
func EndProcess(what string) {
	go panic(what) // where no controller's recover catches it
	select {}
}
