// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Causes remembers why and since when the keys of a queue wait. Its zero value is ready to use.
type Causes struct {
	mu   sync.Mutex
	keys map[string]cause
}

type cause struct {
	since time.Time
	of    trace.SpanContext
}

// Note remembers that a key was queued at a time because of what ctx traces, if that is anything.
// The first time counts, and the first trace.
func (c *Causes) Note(ctx context.Context, key string, now time.Time) {
	if !Recording() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	noted, waits := c.keys[key]
	if !waits {
		noted.since = now
	}
	if !noted.of.IsValid() {
		noted.of = trace.SpanContextFromContext(ctx)
	}
	if c.keys == nil {
		c.keys = map[string]cause{}
	}
	c.keys[key] = noted
}

// Begin begins the span of a key's work, as part of the trace that caused it. The span begins when
// the key was queued, and its event "begin" is now.
func (c *Causes) Begin(ctx context.Context, name, key string) (context.Context, trace.Span) {
	if !Recording() {
		return start(ctx, name)
	}
	c.mu.Lock()
	why, noted := c.keys[key]
	delete(c.keys, key)
	c.mu.Unlock()
	options := []trace.SpanStartOption{trace.WithAttributes(attribute.String("key", key))}
	if noted {
		options = append(options, trace.WithTimestamp(why.since))
	}
	if why.of.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, why.of)
	}
	ctx, span := start(ctx, name, options...)
	span.AddEvent("begin")
	return ctx, span
}
