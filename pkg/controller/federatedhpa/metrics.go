// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// metrics count writes, and show the status of every object when they are read.
type metrics struct {
	writes   *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	restores *prometheus.CounterVec
	objects  cache.Store
}

var (
	boundsMetric = prometheus.NewDesc("evenkeel_federatedhpa_cluster_replicas",
		"Replicas of a federated autoscaler in one cluster: min, max, counted (the highest maximum that the cluster can have now), left (without an autoscaler since the cluster left), current, desired and ready.",
		[]string{"namespace", "name", "cluster", "what"}, nil)
	reachableMetric = prometheus.NewDesc("evenkeel_federatedhpa_cluster_reachable",
		"1 while a cluster of a federated autoscaler answers, otherwise 0.", []string{"namespace", "name", "cluster"}, nil)
)

func newMetrics(r prometheus.Registerer, objects cache.Store) *metrics {
	m := &metrics{
		objects: objects,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_federatedhpa_writes_total", Help: "Writes by cluster (empty for the hub), kind (create, change, remove, workload, status) and result (done, conflict, error).",
		}, []string{"cluster", "what", "end"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "evenkeel_federatedhpa_write_seconds", Help: "Duration of writes to a cluster.",
		}, []string{"cluster"}),
		restores: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenkeel_federatedhpa_cluster_restores_total", Help: "How often a cluster showed older objects than before, as after a restore of its etcd, and was read again.",
		}, []string{"cluster"}),
	}
	if r != nil {
		r.MustRegister(m.writes, m.seconds, m.restores, m)
	}
	return m
}

func (m *metrics) countWrite(cluster, what string, err error, took time.Duration) {
	m.writes.WithLabelValues(cluster, what, written.ResultLabel(err)).Inc()
	m.seconds.WithLabelValues(cluster).Observe(took.Seconds())
}

// forget removes the metrics of a cluster that is gone.
func (m *metrics) forget(cluster string) {
	m.writes.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
	m.seconds.DeleteLabelValues(cluster)
	m.restores.DeleteLabelValues(cluster)
}

func (m *metrics) reported(err error) {
	m.writes.WithLabelValues("", "status", written.ResultLabel(err)).Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(into chan<- *prometheus.Desc) {
	into <- boundsMetric
	into <- reachableMetric
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	for _, item := range m.objects.List() {
		o, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler)
		if !ok {
			continue
		}
		for _, s := range o.Status.Clusters {
			reachable := 1.0
			if s.State == v1alpha1.StateUnreachable {
				reachable = 0
			}
			into <- prometheus.MustNewConstMetric(reachableMetric, prometheus.GaugeValue, reachable, o.Namespace, o.Name, s.Name)
			counted := s.ConfirmedMaxReplicas
			if s.Outstanding != nil {
				counted = max(counted, s.Outstanding.MaxReplicas)
			}
			counted = max(counted, s.LeftReplicas)
			for what, n := range map[string]int32{
				"min": s.ConfirmedMinReplicas, "max": s.ConfirmedMaxReplicas, "counted": counted, "left": s.LeftReplicas,
				"current": s.CurrentReplicas, "desired": s.DesiredReplicas, "ready": s.ReadyReplicas,
			} {
				into <- prometheus.MustNewConstMetric(boundsMetric, prometheus.GaugeValue, float64(n), o.Namespace, o.Name, s.Name, what)
			}
		}
	}
}
