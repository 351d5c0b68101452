// SPDX-License-Identifier: Apache-2.0

// Package metrics knows the name, type, labels and meaning of every metric of ours. Dashboards, alerts and the page for
// operators are held against it.
//
// metrics.yaml is the one list. A test makes it from what the controllers register; whoever adds or renames a metric writes the
// list anew (go test ./internal/metrics -update) and sees in the difference what it breaks for others.
package metrics

import (
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Prefix of the names of all metrics of ours.
const Prefix = "evenkeel_"

// Metric is what a reader has to know of one.
type Metric struct {
	Name string `json:"name"`
	// Type is counter, gauge or histogram.
	Type   string   `json:"type"`
	Labels []string `json:"labels,omitempty"`
	Help   string   `json:"help"`
}

//go:embed metrics.yaml
var list []byte

// All metrics, by name.
func All() ([]Metric, error) {
	var all []Metric
	if err := yaml.UnmarshalStrict(list, &all); err != nil {
		return nil, fmt.Errorf("read list of metrics: %w", err)
	}
	return all, nil
}

// Find the metric that a name in a query stands for; a histogram has three.
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
