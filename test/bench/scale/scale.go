// SPDX-License-Identifier: Apache-2.0

// Package scale creates and deletes machines on a local cluster, with Evenkeel's
// machine-controller-manager and the stock one, and prints what each needed.
package scale

import (
	"context"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	manager = "machine-controller-manager"
	driver  = "machine-controller"
)

// contestants are built from this module and from machine-controller-manager's own sources.
var contestants = []localcluster.Program{
	{Name: manager},
	{Name: manager, Package: "github.com/gardener/machine-controller-manager/cmd/" + manager, Binary: "stock-" + manager},
}

// rates are Gardener's.
var rates = []string{"--kube-api-qps=150", "--kube-api-burst=200", "--concurrent-syncs=30"}

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	n := flags.Int("n", 500, "number of machines")
	pools := flags.Int("pools", 5, "number of MachineDeployments")
	return func(ctx context.Context) error { return compare(ctx, *n, *pools) }
}

func compare(ctx context.Context, n, pools int) error {
	var results []figures
	for _, contestant := range contestants {
		fmt.Printf("== %s, %d machines in %d MachineDeployments\n", label(contestant), n, pools)
		f, err := run(ctx, contestant, n, pools)
		if err != nil {
			return fmt.Errorf("run %s: %w", label(contestant), err)
		}
		results = append(results, f)
	}
	return report(results[0], results[1])
}

func label(program localcluster.Program) string {
	if program.Package != "" {
		return "stock"
	}
	return "ours"
}

// run has a cluster of its own, so that contestants start alike.
func run(ctx context.Context, contestant localcluster.Program, n, pools int) (figures, error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "scale", Out: os.Stdout, Audit: true, UnsafeNoFsync: true})
	if err != nil {
		return figures{}, err
	}
	defer func() {
		if err := cluster.Reset(); err != nil {
			fmt.Fprintln(os.Stderr, "bench scale:", err)
		}
	}()
	if err := cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return figures{}, err
	}
	if _, err := cluster.RunProgram(ctx, localcluster.Program{Name: driver, Flags: rates}); err != nil {
		return figures{}, err
	}
	if contestant.Kubeconfig, err = cluster.KubeconfigFor(manager, "system:masters"); err != nil {
		return figures{}, err
	}
	contestant.Flags = rates
	process, err := cluster.RunProgram(ctx, contestant)
	if err != nil {
		return figures{}, err
	}
	return measure(ctx, cluster, process, n, pools)
}

func measure(ctx context.Context, cluster *localcluster.Cluster, process *localcluster.Process, n, pools int) (f figures, err error) {
	fleet, err := newFleet(ctx, cluster.Config(), pools)
	if err != nil {
		return f, err
	}
	if f.up, err = timed(func() error { return fleet.scale(ctx, n) }); err != nil {
		return f, err
	}
	if f.down, err = timed(func() error { return fleet.scale(ctx, 0) }); err != nil {
		return f, err
	}
	if f.writes, err = countWrites(cluster.AuditLog(), manager); err != nil {
		return f, err
	}
	usage, err := localcluster.ReadUsage(process.PID())
	f.memory, f.cpu = usage.Peak, usage.CPU
	return f, err
}

func timed(do func() error) (time.Duration, error) {
	start := time.Now()
	err := do()
	return time.Since(start), err
}

func report(ours, stock figures) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tours\tstock\tours/stock\t")
	row := func(name, format string, a, b float64) {
		fmt.Fprintf(table, "%s\t"+format+"\t"+format+"\t%.2f\t\n", name, a, b, a/max(b, 1e-9))
	}
	row("all up, s", "%.1f", ours.up.Seconds(), stock.up.Seconds())
	row("all down, s", "%.1f", ours.down.Seconds(), stock.down.Seconds())
	row("machines created", "%.0f", float64(ours.writes.machinesCreated), float64(stock.writes.machinesCreated))
	row("API writes", "%.0f", float64(ours.writes.all), float64(stock.writes.all))
	row("refused (conflicts)", "%.0f", float64(ours.writes.refused), float64(stock.writes.refused))
	row("peak memory, MiB", "%.0f", ours.memory, stock.memory)
	row("CPU, s", "%.1f", ours.cpu.Seconds(), stock.cpu.Seconds())
	return table.Flush()
}
