// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
)

type metrics struct {
	skew   *prometheus.GaugeVec
	moves  prometheus.Counter
	held   *prometheus.GaugeVec
	blocks *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		skew: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "evenkeel_balance_skew", Help: "Difference in replicas between the largest and the smallest MachineDeployment of a group of similar ones. The label is the first member of the group.",
		}, []string{"group"}),
		moves: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evenkeel_balance_moves_total", Help: "Replicas that were moved from one MachineDeployment to another.",
		}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "evenkeel_balance_blocked_machinedeployments", Help: "MachineDeployments whose replicas cannot be evened out now, by reason. Each reason needs an action.",
		}, []string{"reason"}),
		blocks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_balance_blocked_total", Help: "Moves that were blocked, by reason.",
		}, []string{"reason"}),
	}
	if r != nil {
		r.MustRegister(m.skew, m.moves, m.held, m.blocks)
	}
	return m
}

// planned records the results of a plan.
func (m *metrics) planned(p plan.Plan) {
	m.skew.Reset()
	for group, n := range p.Skews {
		m.skew.WithLabelValues(group).Set(float64(n))
	}
	m.held.Reset()
	for _, reason := range p.Blocks {
		m.held.WithLabelValues(reason).Inc()
	}
}

func (m *metrics) moved(replicas int) { m.moves.Add(float64(replicas)) }

func (m *metrics) blocked(reason string) { m.blocks.WithLabelValues(reason).Inc() }
