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
	// How long a client may take to send a request: a bound on what a slow one can hold.
	headerTimeout = 5 * time.Second
	// How long a browser may take to accept an answer or an update. It asks again by itself where a stream has ended.
	writeTimeout = 10 * time.Second
	// How long a connection may be idle between two requests.
	idleTimeout = 2 * time.Minute
	// How long the headers of a request may be, in bytes: an address and some cookies of other servers of this host.
	headerBytes = 32 << 10
	// How long requests under way may take to end once the page stops.
	drainTimeout = time.Second
)

// Server serves the page.
type Server struct {
	// name is what the page shows of, such as a context of a kubeconfig.
	name  string
	board *sceneFeed
	key   key
}

// New returns a server for the page. It starts nothing.
func New(name string, source Source, clock clock.WithTicker, pace time.Duration) *Server {
	return &Server{name: name, board: newBoard(source, clock, pace), key: newKey()}
}

// Address returns what to open in a browser. Whoever knows it sees the page.
func (s *Server) Address(listener net.Listener) string {
	return "http://" + listener.Addr().String() + "/?" + parameter + "=" + string(s.key)
}

// Listen takes a port of this machine that no other machine can reach. Port 0 is a free one.
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
	server := s.server(ctx)
	running.Go(func() { s.board.run(ctx) })
	running.Go(func() { shutdownAfter(ctx, server) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}

func (s *Server) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler: s.handler(), MaxHeaderBytes: headerBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		// Streams end with ctx: a shutdown would wait for them.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// shutdownAfter ends the server when ctx ends, and returns when its requests have ended or timed
// out.
func shutdownAfter(ctx context.Context, server *http.Server) {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		// What is left is cut off: there is nothing to lose in a page that is read.
		_ = server.Close()
	}
}
