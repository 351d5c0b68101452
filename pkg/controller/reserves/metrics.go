// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// metrics counts writes, and exposes the status of every Reserve when it is scraped.
type metrics struct {
	writes   *prometheus.CounterVec
	reserves cache.Indexer
}

var machinesMetric = prometheus.NewDesc("evenkeel_reserves_machines",
	"Spare machines of a Reserve: desired now, existing, and ready.", []string{"namespace", "name", "what"}, nil)

func newMetrics(r prometheus.Registerer, reserves cache.Indexer) *metrics {
	m := &metrics{reserves: reserves, writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "evenkeel_reserves_writes_total", Help: "Writes by kind (request, status) and result (done, conflict, error).",
	}, []string{"what", "end"})}
	for _, what := range []string{"request", "status"} {
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
func (m *metrics) Describe(into chan<- *prometheus.Desc) { into <- machinesMetric }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	for _, r := range stores.List[*v1alpha1.Reserve](m.reserves) {
		s := r.Status
		for what, n := range map[string]int32{"desired": s.DesiredReplicas, "existing": s.Replicas, "ready": s.ReadyReplicas} {
			into <- prometheus.MustNewConstMetric(machinesMetric, prometheus.GaugeValue, float64(n), r.Namespace, r.Name, what)
		}
	}
}
