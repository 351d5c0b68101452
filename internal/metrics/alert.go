// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// AlertsFile has the alerts, from the repository's root. It is a file of rules as Prometheus reads it.
const AlertsFile = "dashboards/alerts.yaml"

// Alert is a rule of Prometheus.
type Alert struct {
	Alert string `json:"alert"`
	Expr  string `json:"expr"`
	// For is how long it has to be so, in Prometheus' form.
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Group of alerts about one process.
type Group struct {
	Name  string  `json:"name"`
	Rules []Alert `json:"rules"`
}

// ReadAlerts reads a file of rules.
func ReadAlerts(text []byte) ([]Group, error) {
	var file struct {
		Groups []Group `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return file.Groups, nil
}
