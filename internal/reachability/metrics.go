// SPDX-License-Identifier: Apache-2.0

package reachability

import "github.com/prometheus/client_golang/prometheus"

var silentMetric = prometheus.NewDesc("evenkeel_cluster_silent",
	"1 while the API server of a cluster (control or target) has not answered for 30 seconds, otherwise 0.", []string{"cluster"}, nil)

// Metrics show whether clusters are silent. They leave out clusters that are not probed, as in a
// process that waits for its turn.
type Metrics []*Cluster

// Describe implements prometheus.Collector.
func (m Metrics) Describe(into chan<- *prometheus.Desc) { into <- silentMetric }

// Collect implements prometheus.Collector.
func (m Metrics) Collect(into chan<- prometheus.Metric) {
	for _, c := range m {
		if !c.isProbed() {
			continue
		}
		value := 0.0
		if c.Silent() {
			value = 1
		}
		into <- prometheus.MustNewConstMetric(silentMetric, prometheus.GaugeValue, value, c.name)
	}
}
