// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// Pace is how often the page is drawn again at most: often enough to seem at once, seldom enough to cost little.
	Pace = 250 * time.Millisecond
	// How long a client may take to send its headers: a bound on what a slow one can hold.
	headerTimeout = 5 * time.Second
	// How long a browser may take to accept an update before its stream is ended. It asks again by itself.
	writeTimeout = 10 * time.Second
	// How long requests under way may take to end once the page stops.
	drainTimeout = time.Second
)

// Server serves the page.
type Server struct {
	// name is what the page shows of, such as a context of a kubeconfig.
	name  string
	board *board
}

// New returns a server of the page. It starts nothing.
func New(name string, source Source, clock clock.WithTicker, pace time.Duration) *Server {
	return &Server{name, newBoard(source, clock, pace)}
}

// Listen takes a port of this machine that nobody else can reach. Port 0 is a free one.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen for browsers: %w", err)
	}
	return listener, nil
}

// Serve answers on the listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout,
		// Streams end with ctx: a shutdown would wait for them.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	running.Go(func() { s.board.run(ctx) })
	running.Go(func() { stop(ctx, server) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}

// stop ends the server once ctx ends, and returns when its requests have ended or had their time.
func stop(ctx context.Context, server *http.Server) {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		// What is left is cut off: there is nothing to lose in a page that is read.
		_ = server.Close()
	}
}
