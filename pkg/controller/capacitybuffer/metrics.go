// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// metrics count writes. The statuses of all buffers are summed up when metrics are scraped, because
// users decide how many buffers there are.
type metrics struct {
	writes  *prometheus.CounterVec
	buffers cache.Indexer
}

var (
	buffersMetric = prometheus.NewDesc("evenkeel_capacitybuffer_buffers", "CapacityBuffers with the strategy evenkeel.dev/reserved, by the status of their condition Ready.", []string{"ready"}, nil)
	chunksMetric  = prometheus.NewDesc("evenkeel_capacitybuffer_chunks", "Chunks that all these CapacityBuffers ask room for, as far as quotas allow.", nil, nil)
)

func newMetrics(r prometheus.Registerer, buffers cache.Indexer) *metrics {
	m := &metrics{buffers: buffers, writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "evenkeel_capacitybuffer_writes_total", Help: "Writes by kind (reserve, status) and result (done, conflict, error).",
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
func (m *metrics) Describe(into chan<- *prometheus.Desc) {
	into <- buffersMetric
	into <- chunksMetric
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	ready, chunks := map[bool]int{}, 0.0
	for _, b := range stores.List[*v1beta1.CapacityBuffer](m.buffers) {
		if b.Reserved() {
			ready[meta.IsStatusConditionTrue(b.Status.Conditions, v1beta1.ConditionReady)]++
			chunks += float64(b.Outstanding())
		}
	}
	into <- prometheus.MustNewConstMetric(buffersMetric, prometheus.GaugeValue, float64(ready[true]), "true")
	into <- prometheus.MustNewConstMetric(buffersMetric, prometheus.GaugeValue, float64(ready[false]), "false")
	into <- prometheus.MustNewConstMetric(chunksMetric, prometheus.GaugeValue, chunks)
}
