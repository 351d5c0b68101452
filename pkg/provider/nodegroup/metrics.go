// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// metrics of calls.
type metrics struct {
	calls *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) metrics {
	m := metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_nodegroup_calls_total", Help: "Calls of cluster-autoscaler, by method and gRPC status code.",
		}, []string{"method", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "evenkeel_nodegroup_call_seconds", Help: "Duration of calls of cluster-autoscaler, by method.",
			Buckets: []float64{.0001, .0005, .002, .01, .05, .2, 1, 5},
		}, []string{"method"}),
	}
	if registerer != nil {
		registerer.MustRegister(m.calls, m.took)
	}
	return m
}

func (m metrics) observe(method string, code codes.Code, took time.Duration) {
	m.calls.WithLabelValues(method, code.String()).Inc()
	m.took.WithLabelValues(method).Observe(took.Seconds())
}
