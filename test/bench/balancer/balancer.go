// SPDX-License-Identifier: Apache-2.0

// Package balancer measures how soon a Balancer's replicas are written to its targets, on an API
// server with tens of thousands of pods, beside a bare client that does the same writes.
package balancer

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// size is what the controller has to do with.
type size struct {
	balancers, targets, pods int
}

// each is how many pods a target has.
func (s size) each() int { return s.pods / (s.balancers * s.targets) }

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	var s size
	flags.IntVar(&s.balancers, "balancers", 100, "number of Balancers")
	flags.IntVar(&s.targets, "targets", 5, "Deployments that each Balancer targets")
	flags.IntVar(&s.pods, "pods", 30_000, "pods of all targets")
	changes := flags.Int("changes", 500, "number of times that a Balancer's replicas are changed")
	rest := flags.Duration("rest", 30*time.Second, "how long to count writes at rest")
	return func(ctx context.Context) error { return run(ctx, s, *changes, *rest) }
}

func run(ctx context.Context, s size, changes int, rest time.Duration) error {
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "bench-balancer", Components: localcluster.APIServerOnly, Out: os.Stdout, UnsafeNoFsync: true})
	if err != nil {
		return err
	}
	defer func() {
		if err := cluster.Reset(); err != nil {
			fmt.Fprintln(os.Stderr, "bench balancer:", err)
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
