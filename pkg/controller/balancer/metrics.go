// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// metrics counts writes, and exposes the status of every Balancer when it is scraped.
type metrics struct {
	writes    *prometheus.CounterVec
	balancers cache.Store
}

var (
	replicasMetric = prometheus.NewDesc("evenkeel_balancer_replicas",
		"Replicas of a Balancer: wanted (spec.replicas), desired (including fallback replicas), observed, ready, overflow and deficit.",
		[]string{"namespace", "name", "what"}, nil)
	blockedMetric = prometheus.NewDesc("evenkeel_balancer_blocked_targets",
		"Targets of a Balancer that do not start their replicas.", []string{"namespace", "name"}, nil)
)

func newMetrics(r prometheus.Registerer, balancers cache.Store) *metrics {
	m := &metrics{balancers: balancers, writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "evenkeel_balancer_writes_total", Help: "Writes by kind (raise, lower, retry of a refused one, status) and result (done, conflict, error).",
	}, []string{"what", "end"})}
	for _, what := range []string{"raise", "lower", "retry", "status"} {
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
	into <- replicasMetric
	into <- blockedMetric
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	for _, item := range m.balancers.List() {
		b, ok := item.(*v1alpha1.Balancer)
		if !ok {
			continue
		}
		s, blocked := b.Status, 0
		for _, t := range s.Targets {
			if t.BlockedSince != nil {
				blocked++
			}
		}
		into <- prometheus.MustNewConstMetric(blockedMetric, prometheus.GaugeValue, float64(blocked), b.Namespace, b.Name)
		for what, n := range map[string]int64{
			"wanted": plan.Total(b.Spec), "desired": int64(s.DesiredReplicas), "observed": int64(s.ObservedReplicas),
			"ready": int64(s.ReadyReplicas), "overflow": int64(s.Overflow), "deficit": int64(s.Deficit),
		} {
			into <- prometheus.MustNewConstMetric(replicasMetric, prometheus.GaugeValue, float64(n), b.Namespace, b.Name, what)
		}
	}
}
