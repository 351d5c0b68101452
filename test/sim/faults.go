// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Moment is when a failing write fails.
type Moment int

// A write can fail before it takes effect, or after: then only its answer is lost.
const (
	Before Moment = iota
	After
	Either
)

// scope defines which users and resources a fault affects; an empty part means all.
type scope struct{ user, resource string }

type failure struct {
	chance float64
	moment Moment
}

type faults struct {
	lag     map[scope]func() time.Duration
	held    map[scope]bool
	failing map[scope]failure
	down    map[scope]bool
	silent  map[scope]bool
	slow    func(Request) (before, after time.Duration)
	before  []func(Write) error
	after   []func(Write) error

	stale     map[scope]time.Duration
	bookmarks map[scope]time.Duration
	noInitial map[scope]bool
	troubles  map[scope]*troubles
	random    *rand.Rand
}

func newFaults(seed uint64) faults {
	return faults{
		lag:     map[scope]func() time.Duration{},
		held:    map[scope]bool{},
		failing: map[scope]failure{},
		down:    map[scope]bool{},
		silent:  map[scope]bool{},

		stale: map[scope]time.Duration{}, bookmarks: map[scope]time.Duration{}, noInitial: map[scope]bool{},
		troubles: map[scope]*troubles{},
		random:   rand.New(rand.NewPCG(seed, 1)),
	}
}

// mostSpecific returns the most specific entry for a user and a resource.
func mostSpecific[T any](entries map[scope]T, user, resource string) (T, bool) {
	for _, at := range []scope{{user, resource}, {"", resource}, {user, ""}, {"", ""}} {
		if entry, ok := entries[at]; ok {
			return entry, true
		}
	}
	var none T
	return none, false
}

// scopes returns the scopes of a resource for some users; for all if none is given.
func scopes(resource string, users []string) []scope {
	if len(users) == 0 {
		return []scope{{"", resource}}
	}
	var all []scope
	for _, user := range users {
		all = append(all, scope{user, resource})
	}
	return all
}

// change alters the faults and makes every watch look again.
func (s *Server) change(alter func(*faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	alter(&s.faults)
	close(s.altered)
	s.altered = make(chan struct{})
	s.wakeAll()
}

// Constantly is a lag that never varies.
func Constantly(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// Uniformly is a lag between two bounds that is drawn for each event from the seed.
func Uniformly(seed uint64, from, to time.Duration) func() time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration { return from + time.Duration(random.Int64N(int64(to-from)+1)) }
}

// Lag makes watches of a resource ("" means every one) deliver each event that much later, never
// out of order. The function is called once per event and watch, and not concurrently; nil ends the
// lag for later events. Lists, and the beginning of a watch, are always up to date.
func (s *Server) Lag(resource string, lag func() time.Duration, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes(resource, users) {
			if f.lag[at] = lag; lag == nil {
				delete(f.lag, at)
			}
		}
	})
}

// BreakWatches ends all watches of some users, or of all if none is given, as a proxy does that is
// restarted. It returns how many there were.
func (s *Server) BreakWatches(users ...string) (broken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.order {
		for w := range t.watches {
			if len(users) == 0 || slices.Contains(users, w.client.user) {
				w.broken = true
				broken++
			}
		}
	}
	s.struck["watch broken"] += broken
	s.wakeAll()
	return broken
}

// Skew sets the server's clock ahead of all other clocks, or behind if d is negative. It affects
// the times that the server writes.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d != s.skew {
		s.skew = d
		s.struck["clock jump"]++
	}
}

// Hold makes watches of a resource ("" means every one) deliver nothing until Release.
func (s *Server) Hold(resource string, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes(resource, users) {
			f.held[at] = true
		}
	})
}

// Release ends a Hold that was called with the same arguments.
func (s *Server) Release(resource string, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes(resource, users) {
			delete(f.held, at)
		}
	})
}

// Latency makes every request wait for this time before it takes effect, and again before it is
// answered.
func (s *Server) Latency(d time.Duration) {
	s.LatencyOf(func(Request) (before, after time.Duration) { return d, d })
}

// LatencyOf makes requests wait before they take effect and before they are answered. The function
// is not called concurrently; nil makes all requests immediate.
func (s *Server) LatencyOf(slow func(Request) (before, after time.Duration)) {
	s.change(func(f *faults) { f.slow = slow })
}

// FailWrites makes writes fail with this probability: with an internal error before they take
// effect, or with a timeout afterwards. 0 ends it.
func (s *Server) FailWrites(chance float64, moment Moment, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes("", users) {
			f.failing[at] = failure{chance, moment}
		}
	})
}

// Down makes the server unreachable, or reachable again: requests are refused and watches break.
func (s *Server) Down(down bool, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes("", users) {
			f.down[at] = down
		}
	})
}

// OnWrite adds a hook that is called before each write. If it returns an error with an API status,
// that is the answer; any other error breaks the connection. The write then has no effect. Hooks
// are called for one write at a time and must not call the Server, but may cut clients. Writes of a
// collection are announced without a name.
func (s *Server) OnWrite(hook func(Write) error) {
	s.change(func(f *faults) { f.before = append(f.before, hook) })
}

// AfterWrite adds a hook that is called after each accepted write, including those that change
// nothing, under the rules of OnWrite. With an error, the write stands and only its answer is
// replaced.
func (s *Server) AfterWrite(hook func(Write) error) {
	s.change(func(f *faults) { f.after = append(f.after, hook) })
}

// lost is how long client-go takes to give up a silent connection: 30 seconds until it pings, 15
// until the ping times out.
const lost = 45 * time.Second

// Silence makes the server accept requests without ever answering them or delivering events, or
// ends that. It is what a client sees if a network drops packets. A request that begins during a
// silence has no effect. Requests and watches end when the client gives the connection up.
func (s *Server) Silence(silent bool, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes("", users) {
			f.silent[at] = silent
		}
	})
}

// waitOutSilence waits during a silence.
func (s *Server) waitOutSilence(r *request) error {
	var gaveUp <-chan time.Time
	for {
		s.mu.Lock()
		silent, _ := mostSpecific(s.faults.silent, r.User, "")
		if silent {
			s.struck["silence"]++
		}
		changed := s.altered
		s.mu.Unlock()
		if !silent {
			return nil
		}
		if gaveUp == nil {
			timer := time.NewTimer(lost)
			defer timer.Stop()
			gaveUp = timer.C
		}
		select {
		case <-gaveUp:
			return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}
		case <-changed:
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-r.client.done:
			return refused()
		case <-s.closed:
			return refused()
		}
	}
}

func (s *Server) latency(r *request) (before, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.slow == nil {
		return 0, 0
	}
	return s.faults.slow(r.Request)
}

// reachable reports whether a client can connect now. The caller holds the lock.
func (s *Server) reachable(c *Client) error {
	down, _ := mostSpecific(s.faults.down, c.user, "")
	if down {
		s.struck["outage"]++
	}
	if down || s.ended || c.cut.Load() {
		return refused()
	}
	return nil
}

// drawFailure decides at random whether this write fails, and when. The caller holds the lock.
func (s *Server) drawFailure(user string) (before, after error) {
	f, _ := mostSpecific(s.faults.failing, user, "")
	if f.chance == 0 || s.random.Float64() >= f.chance {
		return nil, nil
	}
	if f.moment == Before || f.moment == Either && s.random.IntN(2) == 0 {
		return apierrors.NewInternalError(errors.New("the simulated storage failed")), nil
	}
	return nil, apierrors.NewTimeoutError("the simulated server was too late", 0)
}
