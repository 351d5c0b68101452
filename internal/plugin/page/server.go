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
	// Pace is the minimum time between two renderings of the page: short enough to seem immediate,
	// long enough to be cheap.
	Pace = 250 * time.Millisecond
	// How long a client may take to send a request, which limits what a slow client can hold.
	headerTimeout = 5 * time.Second
	// How long a browser may take to receive a response or an update. It reconnects by itself when
	// a stream has ended.
	writeTimeout = 10 * time.Second
	// How long a connection may be idle between two requests.
	idleTimeout = 2 * time.Minute
	// The maximum size of the headers of a request, in bytes: an address and cookies of other
	// servers on this host.
	headerBytes = 32 << 10
	// How long requests in flight may take once the page stops.
	drainTimeout = time.Second
)

// Server serves the page.
type Server struct {
	// name is what the page shows, such as a context of a kubeconfig.
	name  string
	board *sceneFeed
	sizes *sizes
	key   key
}

// New returns a server for the page. It starts nothing.
func New(name string, source Source, clock clock.WithTicker, pace time.Duration) *Server {
	return &Server{name: name, board: newBoard(source, clock, pace), sizes: newSizes(source), key: newKey()}
}

// Address returns the address to open in a browser. Everyone who knows it can see the page.
func (s *Server) Address(listener net.Listener) string {
	return "http://" + listener.Addr().String() + "/?" + parameter + "=" + string(s.key)
}

// Listen opens a port that no other machine can reach. Port 0 means a free port.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen for browsers: %w", err)
	}
	return listener, nil
}

// Serve serves on the listener until ctx ends, and closes it.
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
		// Streams end with ctx; otherwise, a shutdown would wait for them.
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
		// The remaining requests are canceled, which is harmless for a read-only page.
		_ = server.Close()
	}
}
