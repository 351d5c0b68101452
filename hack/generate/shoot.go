// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/test/metrics"
)

const (
	dashboard = "dashboards/evenkeel.json"
	additions = "gardener/pkg/additions"
	// chartJobs are the jobs of the chart in a query, in JSON, and shootJob is the one in a Shoot.
	chartJobs = `job=~\"machine-controller-manager|evenkeel-.*\"`
	shootJob  = `job=\"evenkeel\"`
)

// shootRows are the rows of the dashboard about what runs in a Shoot's control plane.
var shootRows = []string{"Reserve", "Preparation", "Reserves", "Capacity buffers", "Release", "Zones", "Node groups", "Processes"}

// withoutEvenkeel describes a Shoot in which Evenkeel does not run. gardenlet has an alert for one
// without any machine-controller-manager.
var withoutEvenkeel = map[string]string{
	"summary": "Evenkeel does not run in place of machine-controller-manager",
	"description": "Stock machine-controller-manager runs, no process holds the lease of machine-controller-manager, or Prometheus does not read its metrics. " +
		"The stock one creates and replaces machines, and keeps no reserve. Check the last reconcile of the Shoot, the pods of machine-controller-manager, and the log of gardener-extension-evenkeel.",
}

// generateShootMonitoring writes the alerts and the dashboard of a Shoot.
func generateShootMonitoring(out string) error {
	alerts, err := shootAlerts()
	if err != nil {
		return err
	}
	shown, err := shootDashboard()
	if err != nil {
		return err
	}
	folder := filepath.Join(out, additions)
	return errors.Join(
		writeFile(filepath.Join(folder, "alerts.yaml"), alerts),
		writeFile(filepath.Join(folder, "dashboard.json"), shown),
	)
}

// shootAlerts are the alerts about the manager, with the labels by which Gardener's Alertmanagers
// send them to operators.
func shootAlerts() ([]byte, error) {
	groups, err := readAlerts()
	if err != nil {
		return nil, err
	}
	groups = slices.DeleteFunc(groups, func(g metrics.Group) bool { return g.Name != "evenkeel-manager" })
	for _, group := range groups {
		for i, rule := range group.Rules {
			rule.Labels["service"], rule.Labels["type"], rule.Labels["visibility"] = "machine-controller-manager", "seed", "operator"
			if rule.Alert == "EvenkeelAbsent" {
				rule.Labels["severity"], group.Rules[i].Annotations = "warning", withoutEvenkeel
			}
		}
	}
	made, err := yaml.Marshal(map[string]any{"groups": groups})
	return append([]byte("# Made from "+metrics.AlertsFile+" by make generate.\n"), made...), err
}

// shootDashboard is the dashboard for Plutono, in which a data source is a name.
func shootDashboard() ([]byte, error) {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		return nil, fmt.Errorf("read dashboard: %w", err)
	}
	var d map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(chartJobs), []byte(shootJob)), &d); err != nil {
		return nil, fmt.Errorf("read dashboard: %w", err)
	}
	d["description"] = "Reserve, capacity buffers, release, zones and node groups of this Shoot."
	d["panels"] = panelsOf(d["panels"].([]any))
	templating := d["templating"].(map[string]any)
	templating["list"] = slices.DeleteFunc(templating["list"].([]any), func(v any) bool { return v.(map[string]any)["type"] == "datasource" })
	nameDataSources(d)
	var made bytes.Buffer
	encoder := json.NewEncoder(&made)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(d)
	return made.Bytes(), err
}

// panelsOf returns the panels in the rows of a Shoot.
func panelsOf(panels []any) (kept []any) {
	row := ""
	for _, p := range panels {
		if panel := p.(map[string]any); panel["type"] == "row" {
			row = panel["title"].(string)
		}
		if slices.Contains(shootRows, row) {
			kept = append(kept, p)
		}
	}
	return kept
}

func nameDataSources(value any) {
	switch v := value.(type) {
	case map[string]any:
		if source, ok := v["datasource"].(map[string]any); ok && source["type"] == "prometheus" {
			v["datasource"] = "prometheus"
		}
		for _, inner := range v {
			nameDataSources(inner)
		}
	case []any:
		for _, inner := range v {
			nameDataSources(inner)
		}
	}
}
