// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
)

// rows of the table.
var rows = []struct {
	name, format string
	of           func(figures) float64
}{
	{"private memory at rest, MiB", "%.1f", func(f figures) float64 { return f.rest.private }},
	{"private memory, peak, MiB", "%.1f", func(f figures) float64 { return f.peak(func(p phase) float64 { return p.peakPrivate }) }},
	{"resident memory at rest, MiB", "%.1f", func(f figures) float64 { return f.rest.resident }},
	{"resident memory, peak, MiB", "%.1f", func(f figures) float64 { return f.peak(func(p phase) float64 { return p.peakResident }) }},
	{"heap at rest, MiB", "%.1f", func(f figures) float64 { return f.rest.heap }},
	{"stacks at rest, MiB", "%.1f", func(f figures) float64 { return f.rest.stacks }},
	{"goroutines at rest", "%.0f", func(f figures) float64 { return f.rest.goroutines }},
	{"CPU until complete, s", "%.2f", func(f figures) float64 { return f.start.cpu.Seconds() }},
	{"CPU at rest, s", "%.2f", func(f figures) float64 { return f.rest.cpu.Seconds() }},
	{"CPU of scaling up and down, s", "%.2f", func(f figures) float64 { return f.scale.cpu.Seconds() }},
	{"CPU of a rollout, s", "%.2f", func(f figures) float64 { return f.rollout.cpu.Seconds() }},
	{"CPU, all, s", "%.2f", func(f figures) float64 { return f.total(func(p phase) float64 { return p.cpu.Seconds() }) }},
	{"time of scaling up and down, s", "%.0f", func(f figures) float64 { return f.scale.took.Seconds() }},
	{"time of a rollout, s", "%.0f", func(f figures) float64 { return f.rollout.took.Seconds() }},
	{"reads (get, list)", "%.0f", func(f figures) float64 { return f.total(func(p phase) float64 { return p.reads }) }},
	{"watches begun and ended", "%.0f", func(f figures) float64 { return f.total(func(p phase) float64 { return p.watches }) }},
	{"writes", "%.0f", func(f figures) float64 { return f.total(phase.allWrites) }},
	{"of Machines", "%.0f", writesOf("machines")},
	{"of Nodes", "%.0f", writesOf("nodes")},
	{"of MachineSets", "%.0f", writesOf("machinesets")},
	{"of MachineDeployments", "%.0f", writesOf("machinedeployments")},
	{"of Events", "%.0f", writesOf("events")},
	{"of Leases", "%.0f", writesOf("leases")},
	{"reads and writes at rest", "%.0f", func(f figures) float64 { return f.rest.reads + f.rest.allWrites() }},
	{"watch events to all clients", "%.0f", func(f figures) float64 { return f.total(func(p phase) float64 { return p.events }) }},
}

func (f figures) phases() []phase { return []phase{f.start, f.rest, f.scale, f.rollout} }

func (f figures) peak(of func(phase) float64) (most float64) {
	for _, p := range f.phases() {
		most = max(most, of(p))
	}
	return most
}

func (f figures) total(of func(phase) float64) (total float64) {
	for _, p := range f.phases() {
		total += of(p)
	}
	return total
}

func writesOf(resource string) func(figures) float64 {
	return func(f figures) float64 { return f.total(func(p phase) float64 { return p.writes[resource] }) }
}

// report prints the medians of all turns, and their ratios to the first contestant's.
func report(s size, all [][]figures) error {
	beside := "more"
	if s.included {
		beside = "of them"
	}
	fmt.Printf("%d machines in %d MachineDeployments with %d pods each; reserve of %d %s; at rest for %v; medians of %d\n\n",
		s.machines, s.pools, s.pods, s.reserve, beside, s.rest, len(all[0]))
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t")
	for i, c := range contestants {
		fmt.Fprintf(table, "%s\t", c.name)
		if i > 0 {
			fmt.Fprint(table, "ratio\t")
		}
	}
	fmt.Fprintln(table)
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t", row.name)
		peer := median(all[0], row.of)
		for i := range contestants {
			value := median(all[i], row.of)
			fmt.Fprintf(table, row.format+"\t", value)
			if i > 0 {
				fmt.Fprintf(table, "%.2f\t", value/max(peer, 1e-9))
			}
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func median(turns []figures, of func(figures) float64) float64 {
	var values []float64
	for _, f := range turns {
		values = append(values, of(f))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
