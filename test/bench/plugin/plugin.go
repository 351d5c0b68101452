// SPDX-License-Identifier: Apache-2.0

// Package plugin measures the time and memory that kubectl evenkeel needs to show many machines and
// pods, compared with kubectl, which only prints the machines.
package plugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/evenkeel/evenkeel/test/bench/internal/fleet"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	s := fleet.Flags(flags)
	runs := flags.Int("runs", 10, "how often each command runs")
	return func(ctx context.Context) error { return run(ctx, *s, *runs) }
}

func run(ctx context.Context, s fleet.Size, runs int) (err error) {
	folder, err := os.MkdirTemp("", "evenkeel-bench-plugin-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	plugin := filepath.Join(folder, "kubectl-evenkeel")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", plugin, "./cmd/kubectl-evenkeel").CombinedOutput(); err != nil {
		return fmt.Errorf("build the plugin: %w: %s", err, out)
	}
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "bench-plugin", Components: localcluster.APIServerOnly, Out: os.Stdout, UnsafeNoFsync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Reset()) }()
	if _, err := fleet.New(ctx, cluster, s); err != nil {
		return err
	}
	fmt.Println()
	return measure(ctx, cluster, plugin, runs)
}
