// SPDX-License-Identifier: Apache-2.0

// Package large measures how long decisions take in a large cluster, beside one of a tenth of its
// size, with objects in memory and without an API server.
package large

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	machines := flags.Int("machines", 5000, "machines of the large cluster, a multiple of 1000")
	return func(context.Context) error {
		if *machines < 1000 || *machines%1000 != 0 {
			return fmt.Errorf("-machines=%d: write a multiple of 1000", *machines)
		}
		return compare(*machines/10, *machines)
	}
}

// decisions are how long decisions of one kind took.
type decisions struct {
	name string
	took []time.Duration
}

func (d *decisions) measure(decide func()) {
	began := time.Now()
	decide()
	d.took = append(d.took, time.Since(began))
}

// percentile is what so many in a hundred decisions did not exceed, in milliseconds.
func (d *decisions) percentile(percent int) float64 {
	slices.Sort(d.took)
	return d.took[max(0, (len(d.took)*percent+99)/100-1)].Seconds() * 1000
}

func compare(small, large int) error {
	before, errSmall := measure(small)
	after, errLarge := measure(large)
	if err := errors.Join(errSmall, errLarge); err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "one decision, ms\t%d machines\t\t\t%d machines\t\t\t\t\n\tdecisions\tmedian\tmost\tdecisions\tmedian\tmost\tratio of medians\t\n", small, large)
	for i, b := range before {
		a := after[i]
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%d\t%.2f\t%.2f\t%.2f\t\n", b.name,
			len(b.took), b.percentile(50), b.percentile(100), len(a.took), a.percentile(50), a.percentile(100), a.percentile(50)/b.percentile(50))
	}
	return table.Flush()
}

// measure lets a fleet get its reserve and a burst of pods, and others an outage and a rolling update.
func measure(machines int) ([]*decisions, error) {
	f := newFleet(machines)
	appears, rests, err := f.reserve()
	if err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	waits, err := f.release()
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	zones, err := f.balance("zones at rest")
	if err != nil {
		return nil, fmt.Errorf("balance: %w", err)
	}
	reserves, failed, err := outage(machines)
	if err != nil {
		return nil, fmt.Errorf("outage: %w", err)
	}
	rolls, err := rollout(machines)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	return []*decisions{appears, rests, waits, zones, reserves, failed, rolls}, nil
}
