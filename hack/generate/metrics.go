// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evenkeel/evenkeel/test/metrics"
)

// generateMetricsPage writes what operators read about metrics and alerts.
func generateMetricsPage(out string) error {
	all, err := metrics.All()
	if err != nil {
		return err
	}
	groups, err := readAlerts()
	if err != nil {
		return err
	}
	page, err := metrics.Page(all, groups)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(out, metrics.PageFile), page)
}

func readAlerts() ([]metrics.Group, error) {
	text, err := os.ReadFile(metrics.AlertsFile)
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return metrics.ReadAlerts(text)
}
