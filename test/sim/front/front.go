// SPDX-License-Identifier: Apache-2.0

// Package front serves a simulated API server on a socket, and can make it hang.
package front

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/evenkeel/evenkeel/test/sim"
)

// Manner defines how a server treats the requests that it accepts.
type Manner string

const (
	// Works answers.
	Works Manner = "works"
	// Silent never answers.
	Silent Manner = "is silent"
	// Halfway sends the head of an answer and the first byte of its body.
	Halfway Manner = "stops halfway"
	// Overloaded answers that there are too many requests.
	Overloaded Manner = "is overloaded"
)

// Front is a simulated API server on a loopback socket.
type Front struct {
	transport http.RoundTripper
	listener  *httptest.Server
	path      string
	ended     chan struct{}

	mu      sync.Mutex
	manner  Manner
	spared  func(path string) bool
	refused int
}

// Serve starts serving the API server that a user connects to, with a kubeconfig in the folder.
func Serve(server *sim.Server, user, folder string) (*Front, error) {
	f := &Front{transport: server.Client(user), path: filepath.Join(folder, user), ended: make(chan struct{}), manner: Works}
	f.listener = httptest.NewServer(f)
	config := clientcmdapi.NewConfig()
	config.Clusters["sim"] = &clientcmdapi.Cluster{Server: f.listener.URL}
	config.Contexts["sim"] = &clientcmdapi.Context{Cluster: "sim"}
	config.CurrentContext = "sim"
	if err := clientcmd.WriteToFile(*config, f.path); err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return f, nil
}

// Kubeconfig is the path of a kubeconfig.
func (f *Front) Kubeconfig() string { return f.path }

// Hang makes the server accept requests and treat them in that manner, except for spared paths; nil
// spares none. Watches deliver nothing any more.
func (f *Front) Hang(manner Manner, spared func(path string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manner, f.spared = manner, spared
}

// Refused is how many requests were answered with too many requests.
func (f *Front) Refused() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// Close ends every connection.
func (f *Front) Close() {
	close(f.ended)
	f.listener.CloseClientConnections()
	f.listener.Close()
}

func (f *Front) now(path string) Manner {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spared != nil && f.spared(path) {
		return Works
	}
	return f.manner
}

// ServeHTTP passes a request to the simulated server and its answer back, as the manner allows.
func (f *Front) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch f.now(request.URL.Path) {
	case Silent:
		f.stall(request.Context())
		panic(http.ErrAbortHandler)
	case Overloaded:
		f.mu.Lock()
		f.refused++
		f.mu.Unlock()
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case Halfway:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = stream{w, f, request}.Write([]byte("{"))
		f.stall(request.Context())
		panic(http.ErrAbortHandler)
	}
	response, err := f.transport.RoundTrip(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(stream{w, f, request}, response.Body)
}

// stall lasts until the client gives up.
func (f *Front) stall(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-f.ended:
	}
}

// stream sends each event of a watch at once, or none while the server hangs.
type stream struct {
	http.ResponseWriter
	front   *Front
	request *http.Request
}

func (s stream) Write(body []byte) (int, error) {
	if s.request.URL.Query().Has("watch") && s.front.now(s.request.URL.Path) != Works {
		s.front.stall(s.request.Context())
	}
	n, err := s.ResponseWriter.Write(body)
	s.ResponseWriter.(http.Flusher).Flush()
	return n, err
}
