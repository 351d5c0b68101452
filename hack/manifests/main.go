// SPDX-License-Identifier: Apache-2.0

// Command manifests renders kubernetes/deploy from the chart. A test holds that this was done.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/evenkeel/evenkeel/test/chart"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	tools, err := chart.Build(ctx, ".")
	if err != nil {
		return err
	}
	for _, part := range chart.Parts {
		text, err := part.Render(ctx, tools)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(part.File()), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if err := os.WriteFile(part.File(), text, 0o644); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	return nil
}
