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
	text, err := os.ReadFile(metrics.AlertsFile)
	if err != nil {
		return fmt.Errorf("read alerts: %w", err)
	}
	groups, err := metrics.ReadAlerts(text)
	if err != nil {
		return err
	}
	page, err := metrics.Page(all, groups)
	if err != nil {
		return err
	}
	to := filepath.Join(out, metrics.PageFile)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.WriteFile(to, page, 0o644); err != nil {
		return fmt.Errorf("write page of metrics: %w", err)
	}
	return nil
}
