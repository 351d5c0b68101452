// SPDX-License-Identifier: Apache-2.0

// Command ui measures how soon the plugin's page shows what changed, in a real browser, beside many
// machines and pods, and what memory the plugin takes for it. It is a benchmark: it judges nothing.
//
// Nothing but etcd and the API server runs: objects are made here and stay as they are made.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/evenkeel/evenkeel/internal/localcluster"
	"github.com/evenkeel/evenkeel/test/bench/internal/fleet"
	"github.com/evenkeel/evenkeel/test/ui"
)

func main() {
	var s fleet.Size
	flag.IntVar(&s.Machines, "machines", 1000, "machines, with a Node each")
	flag.IntVar(&s.Deployments, "deployments", 20, "MachineDeployments that they belong to")
	flag.IntVar(&s.Pods, "pods", 10_000, "pods on all machines")
	changes := flag.Int("changes", 50, "how often a machine changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, *changes)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-ui:", err)
		os.Exit(1)
	}
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
	fmt.Printf("%d machines in %d MachineDeployments, %d pods made in %.0f s\n", s.Machines, s.Deployments, s.Pods, time.Since(begin).Seconds())
	plugin, err := startPlugin(ctx, cluster.Kubeconfig())
	if err != nil {
		return err
	}
	defer closed("plugin", plugin.stop)
	return measure(ctx, f, plugin, browser, changes)
}

func closed(what string, end func() error) {
	if err := end(); err != nil {
		fmt.Fprintf(os.Stderr, "bench-ui: end %s: %v\n", what, err)
	}
}
