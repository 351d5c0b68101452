// SPDX-License-Identifier: Apache-2.0

// Package tracing describes the work of controllers as OpenTelemetry spans: each sync, from the
// event that caused it, its steps and its requests. A trace follows a cause from one controller to
// the next. Nothing is recorded until package export sends the spans somewhere.
package tracing

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of the instrumentation.
const scope = "github.com/evenkeel/evenkeel"

// tracer is nil while nothing is recorded.
var tracer atomic.Pointer[trace.Tracer]

// Record sends the spans of this process to a provider, until the returned function is called.
func Record(to trace.TracerProvider) (stop func()) {
	t := to.Tracer(scope)
	tracer.Store(&t)
	return func() { tracer.CompareAndSwap(&t, nil) }
}

// Recording reports whether spans are recorded.
func Recording() bool { return tracer.Load() != nil }

// Start begins a span within that of ctx. The caller must end it.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return start(ctx, name, trace.WithAttributes(attributes...))
}

func start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return (*t).Start(ctx, name, options...)
}

// Step begins a span for a step that takes no context, and returns what ends it.
func Step(ctx context.Context, name string) (end func()) {
	_, span := Start(ctx, name)
	return func() { span.End() }
}

// Finish ends a span, with the error that its work ended with, if any.
func Finish(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
