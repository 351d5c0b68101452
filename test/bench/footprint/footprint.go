// SPDX-License-Identifier: Apache-2.0

// Package footprint measures memory, CPU time, goroutines and API requests of
// machine-controller-manager, at rest and while machines are created, deleted and replaced: stock,
// Evenkeel without an excess, and Evenkeel with a reserve, each on a local cluster of its own.
package footprint

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"time"

	"github.com/evenkeel/evenkeel/test/bench/internal/parallel"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// size is the fleet that each contestant manages.
type size struct {
	machines, pools, pods int
	// reserve is how many machines the last contestant keeps free: more than the others have, or some
	// of as many.
	reserve  int
	included bool
	// rest is how long the contestants are watched while nothing changes.
	rest time.Duration
}

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	var s size
	flags.IntVar(&s.machines, "n", 10, "number of machines")
	flags.IntVar(&s.pools, "pools", 2, "number of MachineDeployments")
	flags.IntVar(&s.pods, "pods", 10, "DaemonSet pods on each machine")
	flags.BoolVar(&s.included, "included", false, "count the reserve among the machines, so that all have as many (default: a fifth more)")
	flags.DurationVar(&s.rest, "rest", 30*time.Second, "how long to measure at rest")
	turns := flags.Int("turns", 1, "number of measurements; the table shows medians")
	folder := flags.String("profiles", "", "folder for profiles of each contestant (heap and goroutines at rest, CPU of scaling and of a rollout) and its audit log; default: none")
	return func(ctx context.Context) error {
		s.reserve = max(s.machines/5, 1)
		return run(ctx, s, *turns, *folder)
	}
}

func run(ctx context.Context, s size, turns int, folder string) error {
	if s.machines < s.pools || s.pools < 1 || turns < 1 {
		return errors.New("-n must be at least -pools, and -pools and -turns at least 1")
	}
	all := make([][]figures, len(contestants))
	for i := range turns {
		log.Printf("turn %d of %d", i+1, turns)
		took, err := turn(ctx, s, folder)
		if err != nil {
			return err
		}
		for c := range contestants {
			all[c] = append(all[c], took[c])
		}
	}
	return report(s, all)
}

// turn has all contestants live through the story, side by side.
func turn(ctx context.Context, s size, folder string) (took []figures, err error) {
	labs := make([]*lab, len(contestants))
	defer func() {
		for _, l := range labs {
			if l != nil {
				err = errors.Join(err, l.cluster.Reset())
			}
		}
	}()
	for i, c := range contestants {
		if labs[i], err = newLab(ctx, c); err != nil {
			return nil, err
		}
	}
	for _, l := range labs { // one after the other, since each is built first
		if err := l.startManager(ctx, folder != ""); err != nil {
			return nil, err
		}
	}
	took = make([]figures, len(labs))
	err = parallel.Each(len(labs), len(labs), func(i int) (err error) {
		took[i], err = labs[i].live(ctx, s, folder)
		return err
	})
	return took, err
}

// options of a contestant's cluster. Only what manages machines runs in it.
func options(name string) localcluster.Options {
	return localcluster.Options{
		Name: "footprint-" + name, Components: localcluster.APIServerOnly, Out: os.Stderr, Audit: true, Fresh: true, UnsafeNoFsync: true,
	}
}
