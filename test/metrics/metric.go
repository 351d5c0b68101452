// SPDX-License-Identifier: Apache-2.0

// Package metrics knows the name, type, labels and meaning of each of our metrics. Tests compare
// dashboards, alerts and the page for operators with it.
//
// If you add or rename a metric, run go test ./test/metrics -update; the diff of metrics.yaml shows
// what breaks for users.
package metrics

import (
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Prefix of the names of all metrics of ours.
const Prefix = "evenkeel_"

// Metric is what users need to know about one metric.
type Metric struct {
	Name string `json:"name"`
	// Type is counter, gauge or histogram.
	Type   string   `json:"type"`
	Labels []string `json:"labels,omitempty"`
	Help   string   `json:"help"`
}

//go:embed metrics.yaml
var list []byte

// All returns all metrics, sorted by name.
func All() ([]Metric, error) {
	var all []Metric
	if err := yaml.UnmarshalStrict(list, &all); err != nil {
		return nil, fmt.Errorf("read list of metrics: %w", err)
	}
	return all, nil
}

// Find returns the metric of a name in a query; a histogram has three names.
func Find(all []Metric, name string) (Metric, bool) {
	i := slices.IndexFunc(all, func(m Metric) bool {
		if m.Type == "histogram" {
			return slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name)
		}
		return m.Name == name
	})
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}
