// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

// figures are what one contestant took, and the bare client beside it.
type figures struct {
	up         time.Duration
	took, bare growth
	footprint
}

// size is how many machines a fleet has before it grows, and how many pods run on their Nodes.
type size struct{ machines, pods int }

// benchGrowth prints how a fleet gets its reserve, beside a stock fleet that gets as many machines.
func benchGrowth(ctx context.Context, n size, rest time.Duration) error {
	if n.machines%pools != 0 || n.machines < pools {
		return fmt.Errorf("-n=%d: write a multiple of %d, the number of MachineDeployments", n.machines, pools)
	}
	var of, peer figures
	var quiet silence
	err := runInLab(ctx, stock, n, func(l *lab) (err error) {
		peer, err = l.grow(ctx, n, func(ctx context.Context, all []pool) (growth, error) {
			return l.watched(ctx, fleet, isNew, func(ctx context.Context) error {
				return l.raise(ctx, all, "replicas", func(p pool) int { return p.Replicas + each })
			})
		}, pool{Replicas: each})
		return err
	})
	if err != nil {
		return fmt.Errorf("stock: %w", err)
	}
	err = runInLab(ctx, ours, n, func(l *lab) (err error) {
		of, err = l.grow(ctx, n, func(ctx context.Context, all []pool) (growth, error) {
			return l.watched(ctx, fleet, isMarked, func(ctx context.Context) error {
				return l.raise(ctx, all, "excessReplicas", func(pool) int { return each })
			})
		}, pool{Excess: each})
		if err != nil {
			return err
		}
		quiet, err = l.listen(ctx, rest)
		return err
	})
	if err != nil {
		return fmt.Errorf("ours: %w", err)
	}
	return compareGrowth(n, of, peer, quiet)
}

// grow makes a fleet with pods, has the bare client do its part, and then the contestant; more is
// what each pool has more afterwards.
func (l *lab) grow(ctx context.Context, n size, do func(context.Context, []pool) (growth, error), more pool) (f figures, err error) {
	var all []pool
	for i := range pools {
		all = append(all, pool{Name: fmt.Sprintf("pool-%d", i), Replicas: n.machines / pools})
	}
	begin := time.Now()
	if err := l.apply(ctx, "pools.yaml", all); err != nil {
		return f, err
	}
	if err := l.apply(ctx, "bare.yaml", bareNodes()); err != nil {
		return f, err
	}
	if err := l.complete(ctx, all...); err != nil {
		return f, fmt.Errorf("wait for the fleet: %w", err)
	}
	f.up = time.Since(begin)
	if err := l.occupy(ctx, n.pods); err != nil {
		return f, fmt.Errorf("pods: %w", err)
	}
	if f.bare, err = l.growBare(ctx); err != nil {
		return f, fmt.Errorf("bare client: %w", err)
	}
	if f.took, err = do(ctx, all); err != nil {
		return f, err
	}
	for i := range all {
		all[i].Replicas, all[i].Excess = all[i].Replicas+more.Replicas, more.Excess
	}
	if err := l.complete(ctx, all...); err != nil {
		return f, fmt.Errorf("wait for the grown fleet: %w", err)
	}
	f.footprint, err = footprintOf(l.manager.PID())
	return f, err
}

func compareGrowth(n size, of, peer figures, quiet silence) error {
	fmt.Printf("%d machines in %d MachineDeployments, %d pods; then %d more at once: ours by excess, stock by replicas\n", n.machines, pools, n.pods, grown)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tours\tstock\tours/stock\tbare beside ours\tours/bare\t")
	row := func(name string, a, b, floor float64) {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.2f\t", name, a, b, a/b)
		if floor > 0 {
			fmt.Fprintf(table, "%.1f\t%.1f\t", floor, a/floor)
		} else {
			fmt.Fprint(table, "\t\t")
		}
		fmt.Fprintln(table)
	}
	row("fleet up, s", of.up.Seconds(), peer.up.Seconds(), 0)
	row("all machines there (ours: marked), s", of.took.machines.Seconds(), peer.took.machines.Seconds(), of.bare.machines.Seconds())
	row("all nodes there (ours: marked), s", of.took.nodes.Seconds(), peer.took.nodes.Seconds(), of.bare.nodes.Seconds())
	row("peak memory, MiB", of.memory, peer.memory, 0)
	row("CPU, s", of.cpu.Seconds(), peer.cpu.Seconds(), 0)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Println(quiet)
	return nil
}
