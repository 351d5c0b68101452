// SPDX-License-Identifier: Apache-2.0

// Package collector receives traces by OTLP over gRPC, for tests and benchmarks.
package collector

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a span that was received.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Key               string
	Begin, End        time.Time
	// Started is when the work began that had been queued at Begin; zero if it was not queued.
	Started time.Time
	Error   string
}

// Took is how long the span lasted.
func (s Span) Took() time.Duration { return s.End.Sub(s.Begin) }

// Collector keeps all spans that it receives.
type Collector struct {
	coltrace.UnimplementedTraceServiceServer
	server   *grpc.Server
	listener net.Listener

	mu    sync.Mutex
	spans []Span
}

// Start serves on a port of loopback until Stop.
func Start() (*Collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("collect traces: %w", err)
	}
	c := &Collector{server: grpc.NewServer(), listener: listener}
	coltrace.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }() // it ends with Stop
	return c, nil
}

// Endpoint is the address to send to.
func (c *Collector) Endpoint() string { return c.listener.Addr().String() }

// Stop ends the server.
func (c *Collector) Stop() { c.server.Stop() }

// Export receives spans.
func (c *Collector) Export(_ context.Context, r *coltrace.ExportTraceServiceRequest) (*coltrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(s))
			}
		}
	}
	return &coltrace.ExportTraceServiceResponse{}, nil
}

// Spans returns what has been received since the last call, by the time of its beginning.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	spans := c.spans
	c.spans = nil
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	return spans
}

func spanOf(s *tracev1.Span) Span {
	span := Span{
		Trace: fmt.Sprintf("%x", s.GetTraceId()), ID: fmt.Sprintf("%x", s.GetSpanId()), Parent: fmt.Sprintf("%x", s.GetParentSpanId()),
		Name: s.GetName(), Begin: at(s.GetStartTimeUnixNano()), End: at(s.GetEndTimeUnixNano()),
	}
	for _, a := range s.GetAttributes() {
		if a.GetKey() == "key" {
			span.Key = a.GetValue().GetStringValue()
		}
	}
	for _, e := range s.GetEvents() {
		if e.GetName() == "begin" {
			span.Started = at(e.GetTimeUnixNano())
		}
	}
	if status := s.GetStatus(); status.GetCode() == tracev1.Status_STATUS_CODE_ERROR {
		span.Error = strings.TrimSpace(status.GetMessage())
	}
	return span
}

func at(nanoseconds uint64) time.Time { return time.Unix(0, int64(nanoseconds)) }
