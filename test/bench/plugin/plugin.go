// SPDX-License-Identifier: Apache-2.0

// Package plugin measures the time and memory that kubectl evenkeel needs to show many machines and
// pods. For comparison, it measures kubectl, which only prints the same machines.
//
// Only etcd and the API server run: the benchmark creates the objects, and nothing changes them.
package plugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/evenkeel/evenkeel/internal/localcluster"
	"github.com/evenkeel/evenkeel/test/bench/internal/fleet"
)

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	var s fleet.Size
	flags.IntVar(&s.Machines, "machines", 1000, "number of machines, with a Node each")
	flags.IntVar(&s.Deployments, "deployments", 20, "number of MachineDeployments")
	flags.IntVar(&s.Pods, "pods", 10_000, "pods on all machines")
	runs := flags.Int("runs", 10, "how often each command runs")
	return func(ctx context.Context) error { return run(ctx, s, *runs) }
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
	if err := cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return err
	}
	f, err := fleet.New(cluster.Config(), s)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := f.Populate(ctx); err != nil {
		return err
	}
	fmt.Printf("%d machines in %d MachineDeployments, %d pods made in %.0f s\n\n", s.Machines, s.Deployments, s.Pods, time.Since(begin).Seconds())
	return measure(ctx, cluster, plugin, runs)
}
