// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// How long a client may take to send its headers, its whole request, and to receive the
	// response, during which the API server may be asked. These limit what a slow client can hold.
	// Profiles extend the last one for themselves.
	headerTimeout, readTimeout, writeTimeout = 5 * time.Second, 10 * time.Second, 30 * time.Second
	// How long a connection may be idle: longer than Prometheus usually waits between two scrapes.
	idleTimeout = 2 * time.Minute
	// The maximum size of headers, in bytes. A token with many groups fits.
	headerBytes = 64 << 10
	// How long requests in flight may take once the process stops.
	drainTimeout = time.Second
)

// Check returns what is wrong, or nil.
type Check func() error

// Endpoints is what a process exposes about itself.
type Endpoints struct {
	// Healthy contains checks by name. If one fails, /healthz returns 500 and the process should be
	// restarted.
	Healthy map[string]Check
	// Ready contains checks by name. If one fails, /readyz returns 500 and the process does not
	// work (yet).
	Ready map[string]Check
	// Metrics are served at /metrics to everyone who can reach the address; nil means not here.
	Metrics prometheus.Gatherer
	// Profiling adds /debug/pprof.
	Profiling bool
}

// Serve serves on addr until ctx ends. It listens on exactly this address.
func Serve(ctx context.Context, addr string, endpoints Endpoints) error {
	listener, err := listen(ctx, addr)
	if err != nil {
		return fmt.Errorf("serve health and metrics: %w", err)
	}
	return serveUntil(ctx, listener, endpoints.handler())
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}

func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: headerBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}
}

func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := newServer(handler)
	return Together(ctx,
		func(context.Context) error {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve %s: %w", listener.Addr(), err)
			}
			return nil
		},
		func(ctx context.Context) error {
			<-ctx.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
			defer cancel()
			if server.Shutdown(ctx) != nil {
				return server.Close()
			}
			return nil
		},
	)
}

func (e Endpoints) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", report(e.Healthy))
	mux.Handle("/readyz", report(e.Ready))
	if e.Metrics != nil {
		mux.Handle(metricsPath, metricsHandler(e.Metrics))
	}
	if e.Profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

const metricsPath = "/metrics"

// metricsHandler serves metrics. Several libraries have registries of their own; a metric that one
// of them reports twice does not hide the others.
func metricsHandler(metrics prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

func report(checks map[string]Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var errs []error
		for _, name := range slices.Sorted(maps.Keys(checks)) {
			if err := checks[name](); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
