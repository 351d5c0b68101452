// SPDX-License-Identifier: Apache-2.0

// Package release measures how long unschedulable pods wait until they are bound, on a local
// cluster with a real scheduler.
//
//	floor          the benchmark removes the taint of a reserve machine when the first pod is unschedulable
//	instant        instant release: Evenkeel raises replicas and releases machines
//	autoscaler     a reserve and a real cluster-autoscaler, without instant release
//	preemption     pods preempt pause pods of a low priority
//	no reserve     the benchmark raises replicas when the first pod is unschedulable, and machines boot
//
// The autoscaler takes part if CLUSTER_AUTOSCALER is the path of its binary.
package release

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/bench/internal/sleep"
	"github.com/evenkeel/evenkeel/test/collector"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	manager   = "machine-controller-manager"
	driver    = "machine-controller"
	// perMachine is how many pods of one CPU a machine holds.
	perMachine = 10
	// largest is the largest burst.
	largest = 100
	// patience is for whatever takes longest: machines that boot.
	patience = 4 * time.Minute
)

// size is one of bursts, and how often it is measured.
type size struct{ pods, rounds int }

var sizes = []size{{1, 10}, {10, 6}, {largest, 5}}

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	boot := flags.Duration("boot", 10*time.Second, "boot time of a machine that is not in reserve")
	creators := flags.String("creator", "", "measure only pods of this creator, as a row names it, such as \"pods of a Job\"; empty measures all")
	only := flags.Int("pods", 0, "measure only bursts of this size; 0 measures all sizes")
	traced := flags.Bool("traces", false, "also show how long each step of a release takes, from the manager's traces")
	return func(ctx context.Context) error {
		if *only != 0 {
			sizes = slices.DeleteFunc(sizes, func(s size) bool { return s.pods != *only })
		}
		b := &bench{}
		if *traced {
			var err error
			if b.traces, err = collector.Start(); err != nil {
				return err
			}
			defer b.traces.Stop()
		}
		b.only = creator(*creators)
		return b.run(ctx, *boot)
	}
}

// bench is the cluster and its clients.
type bench struct {
	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	ours    versioned.Interface
	bursts  int
	// only is the creator of the pods that are measured; empty for all.
	only creator
	// traces receives the manager's traces; nil if they are not wanted.
	traces *collector.Collector
}

// way is one of the contestants.
type way struct {
	name string
	// rounds bounds how often each size is measured; 0 is as usual.
	rounds int
	// keep has pods stay when they have been measured.
	keep    bool
	creator creator
	// begin prepares for a burst.
	begin func(ctx context.Context, pods int) (start, error)
	// end restores the initial state, and returns how many machines were used.
	end func(ctx context.Context) (machines int, err error)
}

// creator is who creates the pods of a burst.
type creator string

const (
	aReplicaSet creator = ""
	aJob        creator = "pods of a Job"
	// The final number of pods without an owner is not known while they are created.
	noOwner creator = "pods without owner"
	// The pods of a group start together.
	aGroup creator = "pods of a PodGroup"
)

// start describes the pods of a burst.
type start struct {
	zone, priority string
	// react is what to do when the first of them is found unschedulable; nil is nothing.
	react func(context.Context) error
}

func (b *bench) run(ctx context.Context, boot time.Duration) error {
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "bench-release", Out: os.Stderr, UnsafeNoFsync: true})
	if err != nil {
		return err
	}
	defer func() {
		if err := cluster.Reset(); err != nil {
			fmt.Fprintln(os.Stderr, "bench release:", err)
		}
	}()
	if err := cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return err
	}
	config := cluster.Config()
	config.QPS = -1 // the scheduler's own limit is what counts
	b.cluster = cluster
	if b.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if b.ours, err = versioned.NewForConfig(config); err != nil {
		return err
	}
	if _, err := cluster.RunProgram(ctx, localcluster.Program{Name: driver, Binary: "bench-release-driver", Package: "./cmd/" + driver, Flags: rates}); err != nil {
		return err
	}
	if err := b.prepare(ctx, boot); err != nil {
		return err
	}
	return b.compare(ctx)
}

// rates are Gardener's.
var rates = []string{"--kube-api-qps=150", "--kube-api-burst=200"}

// manage runs our machine-controller-manager with some flags more.
func (b *bench) manage(ctx context.Context, flags ...string) error {
	flags = slices.Concat([]string{"--concurrent-syncs=30", "--v=2"}, rates, flags)
	if b.traces != nil {
		flags = append(flags, "--tracing-endpoint="+b.traces.Endpoint())
	}
	_, err := b.cluster.RunProgram(ctx, localcluster.Program{Name: manager, Binary: "bench-release-manager", Package: "./cmd/" + manager, Flags: flags})
	return err
}

// compare measures one way after the other, and prints a table. What is measured first would pay
// for all that is done for the first time, so something is that does not count.
func (b *bench) compare(ctx context.Context) error {
	if err := b.measure(ctx, new(table), b.floor()); err != nil {
		return err
	}
	var t table
	defer func() { t.print(os.Stdout) }() // what there is, whatever happened
	for _, ways := range [][]way{
		{b.floor(), b.instant(ownedPool)},
		{createdBy(aJob, b.floor()), createdBy(aJob, b.instant(employedPool))},
		{createdBy(noOwner, b.floor()), createdBy(noOwner, b.instant(ownerlessPool))},
		{createdBy(aGroup, b.floor()), createdBy(aGroup, b.instant(groupedPool))},
		{b.preemption()}, {b.unprepared()},
	} {
		if b.only != "" && ways[0].creator != b.only {
			continue
		}
		if err := b.measure(ctx, &t, ways...); err != nil {
			return err
		}
	}
	if path := os.Getenv("CLUSTER_AUTOSCALER"); path != "" {
		if err := b.autoscaled(ctx, path, &t); err != nil {
			return fmt.Errorf("autoscaler: %w", err)
		}
	}
	return nil
}

// measure takes turns between ways that are to be held against each other: what a machine can do
// changes from minute to minute.
func (b *bench) measure(ctx context.Context, t *table, ways ...way) error {
	for _, size := range sizes {
		rows := make([]row, len(ways))
		for round := range size.rounds {
			for i, w := range ways {
				if w.rounds > 0 && round >= w.rounds {
					continue
				}
				if err := b.round(ctx, w, size.pods, &rows[i]); err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
			}
		}
		for _, r := range rows {
			fmt.Fprintln(os.Stderr, r)
			r.steps.print(os.Stdout, r)
		}
		*t = append(*t, rows...)
	}
	return nil
}

// round is one burst.
func (b *bench) round(ctx context.Context, w way, pods int, r *row) error {
	r.way, r.pods, r.creator = w.name, pods, w.creator
	if err := sleep.WithContext(ctx, regain); err != nil {
		return err
	}
	s, err := w.begin(ctx, pods)
	if err != nil {
		return err
	}
	took, err := b.burst(ctx, pods, s, w)
	if err != nil {
		return err
	}
	machines, err := w.end(ctx)
	r.took, r.machines = append(r.took, took...), max(r.machines, machines)
	if err == nil && b.traces != nil {
		err = r.steps.collect(ctx, b.traces)
	}
	return err
}

// regain is how long the scheduler's client takes to have its burst of requests again, so that rounds start
// alike.
const regain = 3 * time.Second
