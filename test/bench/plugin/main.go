// SPDX-License-Identifier: Apache-2.0

// Command plugin measures how long kubectl evenkeel takes to show what there is, and how much
// memory, beside many machines and pods, and beside a kubectl that only prints the same machines.
// It is a benchmark: it judges nothing.
//
// Nothing but etcd and the API server runs: objects are made here and stay as they are made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/evenkeel/evenkeel/internal/localcluster"
	"github.com/evenkeel/evenkeel/test/bench/internal/fleet"
)

func main() {
	var s fleet.Size
	flag.IntVar(&s.Machines, "machines", 1000, "machines, with a Node each")
	flag.IntVar(&s.Deployments, "deployments", 20, "MachineDeployments that they belong to")
	flag.IntVar(&s.Pods, "pods", 10_000, "pods on all machines")
	runs := flag.Int("runs", 10, "how often each command is run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, *runs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-plugin:", err)
		os.Exit(1)
	}
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
