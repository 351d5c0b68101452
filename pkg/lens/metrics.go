// SPDX-License-Identifier: Apache-2.0

package lens

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	waits    *prometheus.HistogramVec
	timeouts *prometheus.CounterVec
	held     *prometheus.HistogramVec
	unknown  *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	labels := []string{"resource"}
	// From 1 ms to a minute: a healthy watch takes milliseconds, a write waits for 2 s at most, a
	// list without bound.
	buckets := []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60}
	m := &metrics{
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "evenkeel_lens_write_wait_seconds", Buckets: buckets,
			Help: "How long writes waited until the informer showed them. Writes that it showed at once are not counted.",
		}, labels),
		timeouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_lens_write_wait_timeouts_total",
			Help: "Writes that the informer did not show in time, because the watch was late.",
		}, labels),
		held: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "evenkeel_lens_decision_wait_seconds", Buckets: buckets,
			Help: "How long decisions waited until the informer showed earlier writes, instead of using an older state.",
		}, labels),
		unknown: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_lens_unknown_outcomes_total",
			Help: "Writes whose answer did not show whether they took effect, so that the object was read again.",
		}, labels),
	}
	if r != nil {
		r.MustRegister(m.waits, m.timeouts, m.held, m.unknown)
	}
	return m
}

// initSeries creates the series of a kind before the first event.
func (m *metrics) initSeries(resource string) {
	m.waits.WithLabelValues(resource)
	m.timeouts.WithLabelValues(resource)
	m.held.WithLabelValues(resource)
	m.unknown.WithLabelValues(resource)
}
