// SPDX-License-Identifier: Apache-2.0

// Package ui measures how soon the plugin's page shows a change in a real browser, with many
// machines and pods, and how much memory the plugin needs.
package ui

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/evenkeel/evenkeel/test/bench/internal/fleet"
	"github.com/evenkeel/evenkeel/test/localcluster"
	"github.com/evenkeel/evenkeel/test/ui"
)

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	s := fleet.Flags(flags)
	changes := flags.Int("changes", 50, "how often a machine changes")
	return func(ctx context.Context) error { return run(ctx, *s, *changes) }
}

func run(ctx context.Context, s fleet.Size, changes int) error {
	browser, err := ui.NewBrowser()
	if err != nil {
		return err
	}
	defer closed("browser", browser.Close)
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "bench-ui", Components: localcluster.APIServerOnly, Out: os.Stdout, UnsafeNoFsync: true})
	if err != nil {
		return err
	}
	defer closed("cluster", cluster.Reset)
	f, err := fleet.New(ctx, cluster, s)
	if err != nil {
		return err
	}
	plugin, err := startPlugin(ctx, cluster.Kubeconfig())
	if err != nil {
		return err
	}
	defer closed("plugin", plugin.stop)
	return measure(ctx, f, plugin, browser, changes)
}

func closed(what string, end func() error) {
	if err := end(); err != nil {
		fmt.Fprintf(os.Stderr, "bench ui: end %s: %v\n", what, err)
	}
}
