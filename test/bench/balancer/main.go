// SPDX-License-Identifier: Apache-2.0

// Command balancer measures how soon a Balancer's replicas are written to its targets, on an API
// server with tens of thousands of pods, beside a bare client that does the same writes in the same
// run. It is a benchmark: it judges nothing.
//
// Nothing but etcd, the API server and the controller runs: pods are made here and stay as they are
// made.
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
)

// size is what the controller has to do with.
type size struct {
	balancers, targets, pods int
}

// each is how many pods a target has.
func (s size) each() int { return s.pods / (s.balancers * s.targets) }

func main() {
	var s size
	flag.IntVar(&s.balancers, "balancers", 100, "Balancers")
	flag.IntVar(&s.targets, "targets", 5, "targets of each, Deployments")
	flag.IntVar(&s.pods, "pods", 30_000, "pods of all targets")
	changes := flag.Int("changes", 500, "how often a Balancer's replicas are changed")
	rest := flag.Duration("rest", 30*time.Second, "how long to look for writes at rest")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, *changes, *rest)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-balancer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s size, changes int, rest time.Duration) error {
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "bench-balancer", Components: localcluster.APIServerOnly, Out: os.Stdout, UnsafeNoFsync: true})
	if err != nil {
		return err
	}
	defer func() {
		if err := cluster.Reset(); err != nil {
			fmt.Fprintln(os.Stderr, "bench-balancer:", err)
		}
	}()
	if err := cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return err
	}
	f, err := newFleet(cluster.Config(), s)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := f.populate(ctx); err != nil {
		return err
	}
	fmt.Printf("%d Balancers of %d targets, %d pods made in %.0f s\n", s.balancers, s.targets, s.pods, time.Since(begin).Seconds())
	c, err := startController(ctx, cluster)
	if err != nil {
		return err
	}
	w, err := watchFleet(ctx, f)
	if err != nil {
		return err
	}
	defer w.stop()
	return measure(ctx, f, w, c, changes, rest)
}

// measure prints what it finds.
func measure(ctx context.Context, f *fleet, w *watcher, c *controller, changes int, rest time.Duration) error {
	begin := time.Now()
	if err := w.balanced(ctx); err != nil {
		return err
	}
	fmt.Printf("all balanced %.1f s after the controller was healthy\n", time.Since(begin).Seconds())
	if err := c.quiet(ctx); err != nil {
		return err
	}
	before, err := atRest(ctx, w, c, rest)
	if err != nil {
		return err
	}
	ours, bare, err := compare(ctx, f, w, changes)
	if err != nil {
		return err
	}
	if err := c.quiet(ctx); err != nil {
		return err
	}
	after, err := atRest(ctx, w, c, rest)
	if err != nil {
		return err
	}
	resident, peak, err := c.memory()
	if err != nil {
		return err
	}
	report(ours, bare)
	fmt.Printf("writes at rest, in %s: %d before the changes, %d after them\n", rest, before, after)
	fmt.Printf("memory of the controller: %.0f MiB resident, %.0f MiB at most\n", resident, peak)
	return nil
}
