// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
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

// Source provides what the page shows.
type Source struct {
	// Read returns the present state. It is called by one goroutine at a time.
	Read func() overview.Overview
	// Changed has a value when Read would return something new. One value may stand for many
	// changes.
	Changed <-chan struct{}
	// Size returns how large the reserve of a MachineDeployment should be, or size.ErrNotFound. It
	// is called by one goroutine at a time, and ends early when ctx does.
	Size func(ctx context.Context, namespace, name string) (size.Answer, error)
}

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

//go:embed assets
var assets embed.FS

// handler serves all paths.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.everything)
	mux.HandleFunc("GET /zone/{namespace}/{name}", s.machines)
	mux.HandleFunc("GET /size/{namespace}/{name}", s.size)
	mux.HandleFunc("GET /size/{namespace}/{name}/{picture}", s.sizePicture)
	mux.HandleFunc("GET /events", s.stream)
	mux.Handle("GET /assets/", http.FileServerFS(assets))
	return guarded(s.key.before(mux))
}

func (s *Server) everything(w http.ResponseWriter, r *http.Request) { s.serveView(w, r, view{}) }

func (s *Server) machines(w http.ResponseWriter, r *http.Request) {
	s.serveView(w, r, view{r.PathValue("namespace"), r.PathValue("name")})
}

// document is a whole page.
type document struct {
	// Name is the name of what the page shows, Object the object; empty for everything.
	Name, Object string
	Heading      string
	// Stream is the path of the updates; empty if there are none.
	Stream    string
	Fragments []fragment
}

// serveView answers with the whole page of a view. The first request may wait until there is
// something to show.
func (s *Server) serveView(w http.ResponseWriter, r *http.Request, v view) {
	for now := range s.board.scenes(r.Context()) {
		fragments, err := now.fragments(v)
		if err != nil {
			writeError(w, r, err)
			return
		}
		s.writePage(w, r, document{Object: v.name, Heading: v.heading(), Stream: v.stream(), Fragments: fragments})
		return
	}
}

func (s *Server) writePage(w http.ResponseWriter, r *http.Request, page document) {
	page.Name = s.name
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, "document", page); err != nil {
		writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if len(page.Fragments) == 0 {
		w.WriteHeader(http.StatusNotFound)
	}
	send(w, text.Bytes())
}

// send writes what the browser waited for, so only the write has a deadline. An error means that the
// browser has disconnected.
func send(w http.ResponseWriter, text []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = w.Write(text)
}

func (v view) heading() string {
	if v == (view{}) {
		return "Pools, zones and machines"
	}
	return "Machines of " + v.name
}

// stream returns the path of a view's updates.
func (v view) stream() string {
	if v == (view{}) {
		return "/events"
	}
	return "/events?" + url.Values{"namespace": {v.namespace}, "name": {v.name}}.Encode()
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	klog.FromContext(r.Context()).Error(err, "Page not drawn")
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
