// SPDX-License-Identifier: Apache-2.0

// Package export sends the traces of a process to a collector, by OTLP.
package export

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/tracing"
)

const (
	// million is the rate at which all traces are exported.
	million = 1_000_000
	// exportInterval is how often spans are sent.
	exportInterval = time.Second
	// flushTime is how long the process waits at its end for spans to be exported.
	flushTime = 2 * time.Second
	// complaintPause is how often a failure to export is logged.
	complaintPause = time.Minute
)

// Options select which traces are exported, and where.
type Options struct {
	// Endpoint is the address of a collector, host:port; empty exports nothing.
	Endpoint string
	// SamplesPerMillion is how many of a million traces are exported.
	SamplesPerMillion int32
}

// AddFlags adds the options to a flag set.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Endpoint, "tracing-endpoint", "",
		"Address (host:port) of an OpenTelemetry collector to which traces are sent by OTLP over gRPC, without TLS. Empty disables tracing.")
	flags.Int32Var(&o.SamplesPerMillion, "tracing-samples-per-million", million,
		"How many of a million traces are sent to --tracing-endpoint. Traces that another process has begun to sample are always sent.")
}

// Validate returns what is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	if o.Endpoint != "" {
		if _, _, err := net.SplitHostPort(o.Endpoint); err != nil {
			errs = append(errs, fmt.Errorf("--tracing-endpoint: %w", err))
		}
	}
	if o.SamplesPerMillion < 0 || o.SamplesPerMillion > million {
		errs = append(errs, fmt.Errorf("--tracing-samples-per-million: %d is not between 0 and %d", o.SamplesPerMillion, million))
	}
	return errors.Join(errs...)
}

// Start exports traces until the returned function is called, which waits for a moment until the
// last of them are sent. If the collector does not answer, spans are dropped and nothing waits.
func (o *Options) Start(ctx context.Context, service, version string) (stop func(), err error) {
	if o.Endpoint == "" {
		return func() {}, nil
	}
	log := klog.FromContext(ctx)
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(o.Endpoint), otlptracegrpc.WithInsecure())
	if err != nil {
		return nil, fmt.Errorf("export traces to %s: %w", o.Endpoint, err)
	}
	otel.SetErrorHandler(&complaints{log: log, endpoint: o.Endpoint})
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithBatchTimeout(exportInterval)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(float64(o.SamplesPerMillion)/million))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service), attribute.String("service.version", version))),
	)
	end := tracing.Record(provider)
	log.Info("Exporting traces", "to", o.Endpoint, "samplesPerMillion", o.SamplesPerMillion)
	return func() {
		end()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.V(2).Info("The last traces may be lost", "because", err)
		}
	}, nil
}

// complaints logs failures of the exporter, one a minute: a collector that is down is no reason to
// fill the log.
type complaints struct {
	log      klog.Logger
	endpoint string

	mu   sync.Mutex
	last time.Time
}

// Handle logs a failure, unless another was logged a short time ago.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.last) >= complaintPause {
		c.last = now
		c.log.Error(err, "Traces are lost", "endpoint", c.endpoint)
	}
}
