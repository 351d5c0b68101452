// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/evenkeel/evenkeel/internal/tracing"
)

// recorded records spans until the spec ends.
func recorded() *tracetest.SpanRecorder {
	recorder := tracetest.NewSpanRecorder()
	DeferCleanup(tracing.Record(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))))
	return recorder
}

func named(recorder *tracetest.SpanRecorder, name string) sdktrace.ReadOnlySpan {
	for _, s := range recorder.Ended() {
		if s.Name() == name {
			return s
		}
	}
	Fail("no span " + name)
	return nil
}

var _ = Describe("Spans", func() {
	It("cost nothing and change nothing while nothing is recorded", func() {
		ctx, span := tracing.Start(context.Background(), "sync")
		Expect(ctx).To(BeIdenticalTo(context.Background()))
		Expect(span.IsRecording()).To(BeFalse())
		Expect(tracing.Recording()).To(BeFalse())
		tracing.Step(ctx, "step")()
		tracing.Finish(span, errors.New("broken"))
	})

	It("are recorded until that is stopped, and by the last one who asked", func() {
		first, second := tracetest.NewSpanRecorder(), tracetest.NewSpanRecorder()
		stopFirst := tracing.Record(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(first)))
		stopSecond := tracing.Record(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(second)))
		stopFirst()
		Expect(tracing.Recording()).To(BeTrue())
		tracing.Step(context.Background(), "step")()
		stopSecond()
		tracing.Step(context.Background(), "later")()
		Expect(tracing.Recording()).To(BeFalse())
		Expect(first.Ended()).To(BeEmpty())
		Expect(second.Ended()).To(HaveLen(1))
	})

	It("belong to the span around them, and carry the error that ended them", func() {
		recorder := recorded()
		ctx, outer := tracing.Start(context.Background(), "sync")
		tracing.Step(ctx, "plan")()
		tracing.Finish(outer, errors.New("broken"))
		plan, sync := named(recorder, "plan"), named(recorder, "sync")
		Expect(plan.Parent().SpanID()).To(Equal(sync.SpanContext().SpanID()))
		Expect(sync.Status()).To(Equal(sdktrace.Status{Code: codes.Error, Description: "broken"}))
		Expect(plan.Status().Code).To(Equal(codes.Unset))
	})
})

var _ = Describe("Causes", func() {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	It("make the span of a key part of the trace that queued it, from then on", func() {
		recorder := recorded()
		var causes tracing.Causes
		ctx, raise := tracing.Start(context.Background(), "raise")
		causes.Note(context.Background(), "default/pool", noon)
		causes.Note(ctx, "default/pool", noon.Add(time.Second))
		causes.Note(ctx, "default/other", noon)
		raise.End()
		_, span := causes.Begin(context.Background(), "sync", "default/pool")
		span.End()
		sync := named(recorder, "sync")
		Expect(sync.Parent().SpanID()).To(Equal(raise.SpanContext().SpanID()))
		Expect(sync.SpanContext().TraceID()).To(Equal(raise.SpanContext().TraceID()))
		Expect(sync.StartTime()).To(Equal(noon))
		Expect(sync.Events()).To(ConsistOf(HaveField("Name", "begin")))
	})

	It("count once", func() {
		recorder := recorded()
		var causes tracing.Causes
		ctx, raise := tracing.Start(context.Background(), "raise")
		causes.Note(ctx, "default/pool", noon)
		_, span := causes.Begin(context.Background(), "first", "default/pool")
		span.End()
		_, span = causes.Begin(context.Background(), "second", "default/pool")
		span.End()
		raise.End()
		Expect(named(recorder, "second").Parent().IsValid()).To(BeFalse())
		Expect(named(recorder, "second").StartTime()).NotTo(Equal(noon))
	})

	It("keep the first of several traces", func() {
		recorder := recorded()
		var causes tracing.Causes
		ctx, first := tracing.Start(context.Background(), "first")
		causes.Note(ctx, "default/pool", noon)
		ctx, second := tracing.Start(context.Background(), "second")
		causes.Note(ctx, "default/pool", noon)
		_, span := causes.Begin(context.Background(), "sync", "default/pool")
		span.End()
		first.End()
		second.End()
		Expect(named(recorder, "sync").Parent().SpanID()).To(Equal(first.SpanContext().SpanID()))
	})

	It("are not kept while nothing is recorded", func() {
		var causes tracing.Causes
		causes.Note(context.Background(), "default/pool", noon)
		recorder := recorded()
		_, span := causes.Begin(context.Background(), "sync", "default/pool")
		span.End()
		Expect(named(recorder, "sync").StartTime()).NotTo(Equal(noon))
	})
})

var _ = Describe("Requests", func() {
	var parents []string
	var server *httptest.Server
	BeforeEach(func() {
		parents = nil
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			parents = append(parents, r.Header.Get("Traceparent"))
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusConflict)
			}
		}))
		DeferCleanup(server.Close)
	})
	send := func(ctx context.Context, method, path string) error {
		request, err := http.NewRequestWithContext(ctx, method, server.URL+path, nil)
		Expect(err).NotTo(HaveOccurred())
		response, err := tracing.Transport(http.DefaultTransport).RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		return err
	}

	DescribeTable("have a name without the names of objects",
		func(path, name string) {
			recorder := recorded()
			ctx, span := tracing.Start(context.Background(), "sync")
			Expect(send(ctx, http.MethodPatch, path)).To(Succeed())
			span.End()
			request := named(recorder, "PATCH "+name)
			Expect(request.Parent().SpanID()).To(Equal(span.SpanContext().SpanID()))
			Expect(request.SpanKind()).To(Equal(trace.SpanKindClient))
			Expect(parents).To(ConsistOf("00-" + request.SpanContext().TraceID().String() + "-" + request.SpanContext().SpanID().String() + "-01"))
		},
		Entry("of a custom resource", "/apis/machine.sapcloud.io/v1alpha1/namespaces/shoot/machines/m-1", "machines"),
		Entry("of a status", "/apis/machine.sapcloud.io/v1alpha1/namespaces/shoot/machines/m-1/status", "machines/status"),
		Entry("of a list", "/api/v1/namespaces/shoot/pods", "pods"),
		Entry("of a cluster's object", "/api/v1/nodes/n-1", "nodes"),
		Entry("of its status", "/api/v1/nodes/n-1/status", "nodes/status"),
		Entry("of a namespace", "/api/v1/namespaces/shoot", "namespaces"),
		Entry("of something else", "/readyz", "/readyz"),
	)

	It("say how they ended", func() {
		recorder := recorded()
		ctx, span := tracing.Start(context.Background(), "sync")
		Expect(send(ctx, http.MethodDelete, "/api/v1/nodes/n-1")).To(Succeed())
		server.Close()
		Expect(send(ctx, http.MethodGet, "/api/v1/nodes/n-1")).NotTo(Succeed())
		span.End()
		Expect(named(recorder, "DELETE nodes").Status()).To(Equal(sdktrace.Status{Code: codes.Error, Description: "409 Conflict"}))
		Expect(named(recorder, "GET nodes").Status().Code).To(Equal(codes.Error))
	})

	It("are no spans outside of a trace, and tell the server nothing", func() {
		recorder := recorded()
		Expect(send(context.Background(), http.MethodPatch, "/api/v1/nodes/n-1")).To(Succeed())
		Expect(recorder.Ended()).To(BeEmpty())
		Expect(parents).To(ConsistOf(""))
	})
})
