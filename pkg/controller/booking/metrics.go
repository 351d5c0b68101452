// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// metrics count writes. Requests are counted when metrics are scraped, because users decide how many
// there are.
type metrics struct {
	writes   *prometheus.CounterVec
	requests cache.Indexer
}

var requestsMetric = prometheus.NewDesc("evenkeel_booking_requests", "ProvisioningRequests of the class reserved.evenkeel.dev, by state (Waiting, Provisioned, Failed, Expired).", []string{"state"}, nil)

func newMetrics(r prometheus.Registerer, requests cache.Indexer) *metrics {
	m := &metrics{requests: requests, writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "evenkeel_booking_writes_total", Help: "Writes by kind (reserve, status) and result (done, conflict, error).",
	}, []string{"what", "end"})}
	for _, what := range []string{"reserve", "status"} {
		written.InitCounters(m.writes, what)
	}
	if r != nil {
		r.MustRegister(m.writes, m)
	}
	return m
}

func (m *metrics) countWrite(what string, err error) {
	m.writes.WithLabelValues(what, written.ResultLabel(err)).Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(into chan<- *prometheus.Desc) { into <- requestsMetric }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	states := map[string]int{provisioningv1.StateWaiting: 0, provisioningv1.StateProvisioned: 0, provisioningv1.StateFailed: 0, provisioningv1.StateExpired: 0}
	for _, r := range stores.List[*provisioningv1.ProvisioningRequest](m.requests) {
		if r.Reserved() {
			states[r.State()]++
		}
	}
	for state, n := range states {
		into <- prometheus.MustNewConstMetric(requestsMetric, prometheus.GaugeValue, float64(n), state)
	}
}
