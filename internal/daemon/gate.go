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
)

// ErrClosed is what a write gets that comes to a closed Gate.
var ErrClosed = errors.New("this process has stopped writing")

// How long writes under way may take to be answered once the gate closes: enough for any API server that is there.
const closeTimeout = 2 * time.Second

// Gate stands between the clients of one process and the API server. Workers of a library cannot always be stopped
// in time: a drain sleeps and evicts for minutes. Once the Gate is closed their writes fail, so the process may hand
// over the lease while they are still on their way out.
type Gate struct {
	mu     sync.Mutex
	closed bool
	// under way, each with what gives it up.
	writes   map[*http.Request]context.CancelFunc
	answered sync.WaitGroup
}

// Behind returns a copy of config whose clients write through the gate.
func (g *Gate) Behind(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return gated{gate: g, next: next} })
	return config
}

// Close refuses every write from now on and returns when those under way have been answered. Those that a server which
// hangs leaves without an answer are given up after 2 s.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	defer time.AfterFunc(closeTimeout, g.giveUp).Stop()
	g.answered.Wait()
}

func (g *Gate) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, cancel := range g.writes {
		cancel()
	}
}

func (g *Gate) enter(write *http.Request, cancel context.CancelFunc) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if g.writes == nil {
		g.writes = map[*http.Request]context.CancelFunc{}
	}
	g.writes[write] = cancel
	g.answered.Add(1)
	return true
}

func (g *Gate) leave(write *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.writes, write)
	g.answered.Done()
}

type gated struct {
	gate *Gate
	next http.RoundTripper
}

func (t gated) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return t.next.RoundTrip(request)
	}
	ctx, cancel := context.WithCancel(request.Context())
	if !t.gate.enter(request, cancel) {
		cancel()
		return nil, ErrClosed
	}
	defer t.gate.leave(request)
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = answer{response.Body, cancel}
	return response, nil
}

// answer is a body that is still to be read, for which its request must stay alive.
type answer struct {
	io.ReadCloser
	done context.CancelFunc
}

func (a answer) Close() error {
	defer a.done()
	return a.ReadCloser.Close()
}
