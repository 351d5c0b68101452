// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

type metrics struct {
	pods     *prometheus.GaugeVec
	machines *prometheus.CounterVec
	raises   *prometheus.CounterVec
	took     prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		pods: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "evenkeel_release_pods", Help: "Waiting pods by outcome (Released, Coming, HasRoom, NoReserve, Unclear, Doubtful, BeyondBounds).",
		}, []string{"outcome"}),
		machines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_release_machines_total", Help: "Machines by which replicas were raised for waiting pods.",
		}, []string{"machinedeployment"}),
		raises: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_release_raises_total", Help: "Raises of replicas by result (done, conflict, error).",
		}, []string{"end"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "evenkeel_release_decision_seconds", Help: "Duration of decisions about waiting pods.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12),
		}),
	}
	written.InitCounters(m.raises)
	if r != nil {
		r.MustRegister(m.pods, m.machines, m.raises, m.took)
	}
	return m
}

func (m *metrics) decided(p plan.Plan, took time.Duration) {
	counts := map[plan.Outcome]int{}
	for _, outcome := range p.Pods {
		counts[outcome]++
	}
	counts[plan.BeyondBounds] += p.Beyond
	for _, outcome := range plan.Outcomes {
		m.pods.WithLabelValues(string(outcome)).Set(float64(counts[outcome]))
	}
	if took > 0 {
		m.took.Observe(took.Seconds())
	}
}

// forget removes the series of a MachineDeployment that no longer exists.
func (m *metrics) forget(key string) { m.machines.DeleteLabelValues(key) }

func (m *metrics) raised(r plan.Raise, err error) {
	if err == nil {
		m.machines.WithLabelValues(r.Pool.Key).Add(float64(r.By))
	}
	end := written.ResultLabel(err)
	if outdated(err) {
		end = "conflict"
	}
	m.raises.WithLabelValues(end).Inc()
}
