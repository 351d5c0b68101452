// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// AlertsFile is the path of the file with the alerts, from the root of the repository. It is a
// Prometheus rule file.
const AlertsFile = "dashboards/alerts.yaml"

// Alert is a rule of Prometheus.
type Alert struct {
	Alert string `json:"alert"`
	Expr  string `json:"expr"`
	// For is how long the condition must hold, in Prometheus' format.
	For string `json:"for"`
	// KeepFiringFor is how long the alert stays after that, in the same format.
	KeepFiringFor string            `json:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels"`
	Annotations   map[string]string `json:"annotations"`
}

// Group contains the alerts about one process.
type Group struct {
	Name  string  `json:"name"`
	Rules []Alert `json:"rules"`
}

// ReadAlerts reads a rule file.
func ReadAlerts(text []byte) ([]Group, error) {
	var file struct {
		Groups []Group `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return file.Groups, nil
}
