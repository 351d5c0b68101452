// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/watchretry"
)

// ErrClosed is the result of a request through a closed Gate.
var ErrClosed = errors.New("this process has stopped")

// ErrUnanswered means that a write was given up without an answer: it may still take effect.
var ErrUnanswered = errors.New("a write was given up without an answer")

// How long the answer to a write in flight may take once its caller or the process stops: enough
// for a working API server, and short compared with a pod's grace period.
const closeTimeout = time.Second

// initialTimeout is how much longer than other requests a watch may take that begins with all
// objects.
const initialTimeout = 4 * time.Minute

// Gate is between the clients of one process and the API server. Workers of a library cannot always
// be stopped in time: a drain sleeps and evicts for minutes, and some requests take no context.
// Once the Gate is closed, their requests fail, so that the process can release the lease while
// they are still ending.
type Gate struct {
	mu         sync.Mutex
	closed     bool
	unanswered bool
	open       map[*exchange]struct{}
	writes     sync.WaitGroup
}

// exchange is a request in flight, until its answer has been read.
type exchange struct {
	gate  *Gate
	write bool
	cut   context.CancelFunc
	once  sync.Once
}

// Behind returns a copy of config whose clients send their requests through the gate.
func (g *Gate) Behind(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return gated{gate: g, next: watchretry.Wrap(next)} })
	return config
}

// Run closes the gate as soon as ctx ends. Run it with Together beside the work: when one part
// of the work ends, the gate closes for all parts.
func (g *Gate) Run(ctx context.Context) error {
	<-ctx.Done()
	return g.Close()
}

// Close refuses every request from now on, cancels reads in flight, and returns when the writes in
// flight have been answered. After a second, it gives up the remaining writes and returns
// ErrUnanswered.
func (g *Gate) Close() error {
	g.mu.Lock()
	g.closed = true
	for e := range g.open {
		if !e.write {
			e.cut()
		}
	}
	g.mu.Unlock()
	defer time.AfterFunc(closeTimeout, g.giveUp).Stop()
	g.writes.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unanswered {
		return ErrUnanswered
	}
	return nil
}

func (g *Gate) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for e := range g.open {
		g.unanswered = true
		e.cut()
	}
}

func (g *Gate) admitRequest(e *exchange) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if g.open == nil {
		g.open = map[*exchange]struct{}{}
	}
	g.open[e] = struct{}{}
	if e.write {
		g.writes.Add(1)
	}
	return true
}

// finish is called when the answer has been read, or if there is none.
func (e *exchange) finish() {
	e.once.Do(func() {
		e.cut()
		e.gate.mu.Lock()
		defer e.gate.mu.Unlock()
		delete(e.gate.open, e)
		if e.write {
			e.gate.writes.Done()
		}
	})
}

type gated struct {
	gate *Gate
	next http.RoundTripper
}

func (t gated) RoundTrip(request *http.Request) (*http.Response, error) {
	write := request.Method != http.MethodGet && request.Method != http.MethodHead
	begin := context.WithCancel
	switch {
	case write:
		begin = outlive
	case request.URL.Query().Get("sendInitialEvents") == "true":
		begin = outlast
	}
	ctx, cut := begin(request.Context())
	e := &exchange{gate: t.gate, write: write, cut: cut}
	if !t.gate.admitRequest(e) {
		cut()
		return nil, ErrClosed
	}
	sent := request.WithContext(ctx)
	//lint:ignore SA1019 http.Client sets it for its timeout, and ctx has a timeout of its own
	sent.Cancel = nil
	response, err := t.next.RoundTrip(sent)
	if err != nil {
		e.finish()
		if ended := request.Context().Err(); ended != nil {
			err = ended // the reason of the caller, not ours
		}
		return nil, err
	}
	if write && response.StatusCode >= http.StatusInternalServerError {
		response.Header.Del("Retry-After") // client-go would repeat a write that may have taken effect
	}
	response.Body = answer{response.Body, e}
	return response, nil
}

// WrappedRoundTripper lets client-go close idle connections and cancel requests.
func (t gated) WrappedRoundTripper() http.RoundTripper { return t.next }

// outlive returns a context that ends when parent exceeds its deadline, and a moment after parent
// is canceled. A write that is canceled may have taken effect; given a moment, it is answered.
func outlive(parent context.Context) (context.Context, context.CancelFunc) {
	return extended(parent, 0, closeTimeout)
}

// outlast returns a context that ends when parent is canceled, and a while after parent exceeds its
// deadline. Otherwise, a watch that begins with all objects would start again and again if the
// objects take longer than the client's timeout.
func outlast(parent context.Context) (context.Context, context.CancelFunc) {
	return extended(parent, initialTimeout, 0)
}

// extended returns a context that ends a given time after parent has exceeded its deadline, or has
// been canceled.
func extended(parent context.Context, afterDeadline, afterCancel time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		wait := afterCancel
		if errors.Is(parent.Err(), context.DeadlineExceeded) {
			wait = afterDeadline
		}
		if wait == 0 {
			cancel()
			return
		}
		time.AfterFunc(wait, cancel)
	})
	return ctx, func() { stop(); cancel() }
}

// answer is a body that is still being read, and keeps its request alive.
type answer struct {
	io.ReadCloser
	exchange *exchange
}

func (a answer) Close() error {
	defer a.exchange.finish()
	return a.ReadCloser.Close()
}
