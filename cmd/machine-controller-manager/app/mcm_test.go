// SPDX-License-Identifier: Apache-2.0

package app

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
)

// fragile is a collector that panics half-way.
type fragile struct{ gauge prometheus.Gauge }

func (f fragile) Describe(into chan<- *prometheus.Desc) { f.gauge.Describe(into) }
func (f fragile) Collect(into chan<- prometheus.Metric) {
	f.gauge.Collect(into)
	panic("a nil pointer")
}

var _ = Describe("Metrics of machine-controller-manager", func() {
	It("arrive where they are wanted, and a scrape survives their panic", func() {
		usual := prometheus.DefaultRegisterer
		registry := prometheus.NewRegistry()
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "late"})
		register(registry, make(chan struct{}), func() { prometheus.MustRegister(fragile{gauge}) })
		Expect(prometheus.DefaultRegisterer).To(BeIdenticalTo(usual))
		families, err := registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		Expect(families).To(HaveLen(1))
	})

	It("are not waited for when the controllers end without", func() {
		ended := make(chan struct{})
		register(prometheus.NewRegistry(), ended, func() { close(ended) })
	})
})
