// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// metrics of preparations.
type metrics struct {
	machines *prometheus.GaugeVec
	failures *prometheus.GaugeVec
	bytes    prometheus.Counter
	seconds  prometheus.Histogram
}

var failureReasons = []plan.FailureReason{
	plan.ImageNotFound, plan.Invalid, plan.LimitReached, plan.NoAccess, plan.NoSpace, plan.PullFailed, plan.Refused, plan.TooSlow, plan.WorkloadNotFound,
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		machines: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "evenkeel_preparation_machines", Help: "Machines in reserve for which something is to be prepared, by state: prepared, preparing, failed.",
		}, []string{"state"}),
		failures: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "evenkeel_preparation_failures", Help: "Machines in reserve whose preparation fails now, by reason.",
		}, []string{"reason"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evenkeel_preparation_pulled_bytes_total", Help: "Size of the images that were prepared, as Nodes report it.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "evenkeel_preparation_duration_seconds", Help: "How long it took to pull a set of images on a machine.", Buckets: prometheus.ExponentialBuckets(0.5, 2, 13),
		}),
	}
	m.report(plan.Plan{})
	if r != nil {
		r.MustRegister(m.machines, m.failures, m.bytes, m.seconds)
	}
	return m
}

// report shows how far machines are.
func (m *metrics) report(p plan.Plan) {
	states, failures := map[string]int{"prepared": 0, "preparing": 0, "failed": 0}, map[plan.FailureReason]int{}
	for _, one := range p.Progress {
		switch {
		case one.Failure != nil:
			states["failed"]++
			failures[one.Failure.Reason]++
		case one.Prepared():
			states["prepared"]++
		default:
			states["preparing"]++
		}
	}
	for state, n := range states {
		m.machines.WithLabelValues(state).Set(float64(n))
	}
	for _, reason := range failureReasons {
		m.failures.WithLabelValues(string(reason)).Set(float64(failures[reason]))
	}
}

func (m *metrics) pulled(bytes int64)          { m.bytes.Add(float64(bytes)) }
func (m *metrics) pulledIn(took time.Duration) { m.seconds.Observe(took.Seconds()) }
