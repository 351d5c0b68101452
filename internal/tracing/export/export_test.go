// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"context"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/internal/tracing"
	"github.com/evenkeel/evenkeel/internal/tracing/export"
	"github.com/evenkeel/evenkeel/test/collector"
)

var _ = Describe("Traces", func() {
	It("reach a collector with their steps, at the latest when the process ends", func() {
		c, err := collector.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(c.Stop)
		o := export.Options{Endpoint: c.Endpoint(), SamplesPerMillion: 1_000_000}
		stop, err := o.Start(context.Background(), "manager", "v1")
		Expect(err).NotTo(HaveOccurred())
		var causes tracing.Causes
		causes.Note(context.Background(), "default/pool", time.Now().Add(-time.Minute))
		ctx, span := causes.Begin(context.Background(), "sync", "default/pool")
		tracing.Step(ctx, "plan")()
		span.End()
		stop()
		Expect(tracing.Recording()).To(BeFalse())
		spans := c.Spans()
		Expect(spans).To(HaveLen(2))
		Expect(spans[0].Name).To(Equal("sync"))
		Expect(spans[0].Key).To(Equal("default/pool"))
		Expect(spans[0].Took()).To(BeNumerically(">=", time.Minute))
		Expect(spans[0].Started).To(BeTemporally(">=", spans[0].Begin.Add(time.Minute)))
		Expect(spans[1].Parent).To(Equal(spans[0].ID))
		Expect(spans[1].Trace).To(Equal(spans[0].Trace))
	})

	It("are not recorded unless there is an endpoint", func() {
		stop, err := (&export.Options{}).Start(context.Background(), "manager", "v1")
		Expect(err).NotTo(HaveOccurred())
		Expect(tracing.Recording()).To(BeFalse())
		stop()
	})

	It("are not sent if none is to be sampled", func() {
		c, err := collector.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(c.Stop)
		stop, err := (&export.Options{Endpoint: c.Endpoint()}).Start(context.Background(), "manager", "v1")
		Expect(err).NotTo(HaveOccurred())
		tracing.Step(context.Background(), "plan")()
		stop()
		Expect(c.Spans()).To(BeEmpty())
	})

	It("hold up nothing where no collector answers", func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		o := export.Options{Endpoint: listener.Addr().String(), SamplesPerMillion: 1_000_000}
		stop, err := o.Start(context.Background(), "manager", "v1")
		Expect(err).NotTo(HaveOccurred())
		for range 10_000 {
			tracing.Step(context.Background(), "plan")()
		}
		begun := time.Now()
		stop()
		Expect(time.Since(begun)).To(BeNumerically("<", 10*time.Second))
	})
})

var _ = Describe("Options", func() {
	parse := func(arguments ...string) error {
		var o export.Options
		flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
		o.AddFlags(flags)
		Expect(flags.Parse(arguments)).To(Succeed())
		return o.Validate()
	}

	DescribeTable("are accepted, or refused with the reason",
		func(complaint string, arguments ...string) {
			if complaint == "" {
				Expect(parse(arguments...)).To(Succeed())
				return
			}
			Expect(parse(arguments...)).To(MatchError(ContainSubstring(complaint)))
		},
		Entry("none", ""),
		Entry("an address", "", "--tracing-endpoint=collector:4317", "--tracing-samples-per-million=10"),
		Entry("no port", "--tracing-endpoint: address collector: missing port", "--tracing-endpoint=collector"),
		Entry("a URL", "--tracing-endpoint: address http://collector:4317: too many colons", "--tracing-endpoint=http://collector:4317"),
		Entry("too many", "--tracing-samples-per-million: 1000001 is not between 0 and 1000000", "--tracing-samples-per-million=1000001"),
		Entry("fewer than none", "--tracing-samples-per-million: -1 is not between", "--tracing-samples-per-million=-1"),
	)
})
