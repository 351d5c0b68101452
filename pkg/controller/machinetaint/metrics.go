// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/pkg/controller/internal/written"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// metrics count what was done, and show the machines in reserve when they are read.
type metrics struct {
	writes    *prometheus.CounterVec
	redundant prometheus.Counter
	released  *prometheus.CounterVec
	restored  prometheus.Counter
	untainted prometheus.Histogram
	stores    *stores
}

var machinesMetric = prometheus.NewDesc("evenkeel_reserve_machines",
	"Machines in reserve of a MachineDeployment, by state: ready, booting, sick or leaving.", []string{"namespace", "name", "state"}, nil)

func newMetrics(r prometheus.Registerer, s *stores) *metrics {
	m := &metrics{
		stores: s,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_reserve_writes_total", Help: "Writes by what was written (machine, node, machinedeployment, status) and how they ended (done, conflict, error).",
		}, []string{"what", "end"}),
		redundant: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evenkeel_reserve_redundant_writes_total", Help: "Writes that changed nothing.",
		}),
		released: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_reserve_releases_total", Help: "Machines that left the reserve to serve, by why (Released, Swapped, Occupied).",
		}, []string{"why"}),
		restored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evenkeel_reserve_restorations_total", Help: "How often spec.excessReplicas had vanished and was restored.",
		}),
		untainted: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "evenkeel_reserve_release_seconds", Help: "Time from the decision to release a machine until its Node is free of the taint.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
	}
	if r != nil {
		r.MustRegister(m.writes, m.redundant, m.released, m.restored, m.untainted, m)
	}
	return m
}

func (m *metrics) wrote(what string, err error) {
	m.writes.WithLabelValues(what, written.End(err)).Inc()
}

func (m *metrics) freed(after time.Duration) { m.untainted.Observe(after.Seconds()) }

// Describe is for prometheus.
func (m *metrics) Describe(into chan<- *prometheus.Desc) { into <- machinesMetric }

// Collect is for prometheus.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	type series struct{ namespace, name, state string }
	count := map[series]int{}
	for _, item := range m.stores.machines.List() {
		machine, ok := item.(*mcm.Machine)
		if !ok || !(Machine{Object: machine}).marked() {
			continue
		}
		if key, found := m.stores.deploymentOf(machine); found {
			_, name, _ := strings.Cut(key, "/")
			count[series{machine.Namespace, name, state(machine)}]++
		}
	}
	for s, n := range count {
		into <- prometheus.MustNewConstMetric(machinesMetric, prometheus.GaugeValue, float64(n), s.namespace, s.name, s.state)
	}
}

func state(m *mcm.Machine) string {
	plain := reserve.Machine{Phase: m.Status.CurrentStatus.Phase, Deleted: m.DeletionTimestamp != nil}
	switch {
	case plain.Leaving():
		return "leaving"
	case plain.Ready():
		return "ready"
	case plain.Sick():
		return "sick"
	}
	return "booting"
}
