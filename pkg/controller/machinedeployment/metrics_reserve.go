// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// reserveMetrics counts what was done for reserves, and shows the present ones when it is read.
type reserveMetrics struct {
	*Controller
	writes    *prometheus.CounterVec
	redundant prometheus.Counter
	released  *prometheus.CounterVec
	restored  prometheus.Counter
	untainted prometheus.Histogram
}

var (
	machinesMetric = prometheus.NewDesc("evenkeel_reserve_machines",
		"Reserve machines of a MachineDeployment by state: ready, booting, sick or leaving.", []string{"namespace", "name", "state"}, nil)
	excessMetric = prometheus.NewDesc("evenkeel_reserve_excess",
		"Excess of a MachineDeployment in machines: wanted, and applied, which are to run beyond replicas.",
		[]string{"namespace", "name", "what"}, nil)
	readyMetric = prometheus.NewDesc("evenkeel_reserve_ready",
		"1 while the condition ReserveReady of a MachineDeployment is True, otherwise 0, with the reason of the condition.", []string{"namespace", "name", "reason"}, nil)
)

// newReserveMetrics registers the metrics with r, if that is not nil.
func newReserveMetrics(r prometheus.Registerer, c *Controller) *reserveMetrics {
	m := &reserveMetrics{
		Controller: c,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_reserve_writes_total", Help: "Writes for MachineDeployments with a reserve, by object (machine, node, machinedeployment, status) and result (done, conflict, error).",
		}, []string{"what", "end"}),
		redundant: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evenkeel_reserve_redundant_writes_total", Help: "Writes that changed nothing.",
		}),
		released: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_reserve_releases_total", Help: "Machines that left the reserve to serve, by cause (Released, Swapped, Occupied).",
		}, []string{"why"}),
		restored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evenkeel_reserve_restorations_total", Help: "How often a client that does not know spec.excessReplicas dropped it, and it was restored.",
		}),
		untainted: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "evenkeel_reserve_release_seconds", Help: "Time from the decision to release a machine until the taint is removed from its Node.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
	}
	for _, what := range []string{"machine", "node", "machinedeployment", "status"} {
		written.InitCounters(m.writes, what)
	}
	for _, why := range []reserve.Why{reserve.Released, reserve.Swapped, machinetaint.Occupied} {
		m.released.WithLabelValues(string(why))
	}
	if r != nil {
		r.MustRegister(m.writes, m.redundant, m.released, m.restored, m.untainted, m)
	}
	return m
}

// countWrite counts a write for a MachineDeployment with a reserve, which changed nothing if the version
// is still the same.
func (a *application) countWrite(what, before string, answer metav1.Object, err error) {
	if a.view.Reserve == nil {
		return
	}
	m := a.reserves.metrics
	m.writes.WithLabelValues(what, written.ResultLabel(err)).Inc()
	if err == nil && answer.GetResourceVersion() == before {
		m.redundant.Inc()
	}
}

// Describe implements prometheus.Collector.
func (m *reserveMetrics) Describe(into chan<- *prometheus.Desc) {
	into <- machinesMetric
	into <- excessMetric
	into <- readyMetric
}

// Collect implements prometheus.Collector.
func (m *reserveMetrics) Collect(into chan<- prometheus.Metric) {
	m.collectMachines(into)
	for d := range stores.All[*machine.MachineDeployment](m.deployments) {
		collectReserve(into, d)
	}
}

func (m *reserveMetrics) collectMachines(into chan<- prometheus.Metric) {
	type series struct{ namespace, name, state string }
	count := map[series]int{}
	for one := range stores.All[*mcm.Machine](m.Controller.machines) {
		if !pool.Marked(one) {
			continue
		}
		set := stores.Controller[mcm.MachineSet](m.sets, one)
		if set == nil {
			continue
		}
		if d := stores.Controller[machine.MachineDeployment](m.deployments, set); d != nil {
			count[series{d.Namespace, d.Name, machineState(one)}]++
		}
	}
	for s, n := range count {
		into <- prometheus.MustNewConstMetric(machinesMetric, prometheus.GaugeValue, float64(n), s.namespace, s.name, s.state)
	}
}

// collectReserve collects the desired and the present reserve of a MachineDeployment; nothing if it
// has none.
func collectReserve(into chan<- prometheus.Metric, d *machine.MachineDeployment) {
	if c := machinetaint.Condition(d); c != nil {
		good := 0.0
		if c.Status == mcm.ConditionTrue {
			good = 1
		}
		into <- prometheus.MustNewConstMetric(readyMetric, prometheus.GaugeValue, good, d.Namespace, d.Name, c.Reason)
	}
	wanted := machinetaint.RecordedField(d) // also where the API server keeps no such field
	if d.Spec.ExcessReplicas != nil {
		wanted = d.Spec.ExcessReplicas
	}
	if r, _ := pool.Parsed(d.Annotations, machine.RequestedExcessAnnotation, machine.ParseRequestedExcess); r != nil && r.Machines > ptr.Deref(wanted, 0) {
		wanted = &r.Machines
	}
	asked := pool.AppliedOf(d, d.Spec.Replicas).Excess
	if wanted == nil && asked == 0 {
		return
	}
	for what, n := range map[string]int{"wanted": int(ptr.Deref(wanted, 0)), "applied": asked} {
		into <- prometheus.MustNewConstMetric(excessMetric, prometheus.GaugeValue, float64(n), d.Namespace, d.Name, what)
	}
}

func machineState(m *mcm.Machine) string {
	plain := reserve.Machine{Phase: m.Status.CurrentStatus.Phase, Deleted: m.DeletionTimestamp != nil}
	switch {
	case plain.Leaving():
		return "leaving"
	case plain.Ready():
		return "ready"
	case plain.Unhealthy():
		return "sick"
	}
	return "booting"
}
