// SPDX-License-Identifier: Apache-2.0

// Package reserve measures what a reserve costs, on a local cluster of virtual machines.
//
// Without -n, it measures a release: from the response to the client that raised replicas until a
// watch shows a reserve Node without its taint. The floor is a client that receives one watch event
// and patches one Node.
//
// With -n, a fleet of that many machines gets a reserve, and is compared with stock and as many
// replicas: the time until machines and Nodes carry the mark, memory and CPU time. With -life, it
// measures what events cost the manager in the life of a fleet, beside one of a tenth.
package reserve

import (
	"context"
	"flag"
	"time"
)

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	n := flags.Int("n", 0, "machines of a fleet that gets a reserve; 0 measures a release")
	pods := flags.Int("pods", 0, "pods that run on the fleet's Nodes before it gets a reserve")
	rounds := flags.Int("rounds", 50, "number of releases")
	lives := flags.Bool("life", false, "have a fleet of -n machines live: rest, pods that wait, a rolling update, an outage, a restart")
	living := flags.Int("pools", 50, "MachineDeployments of a fleet that lives")
	rest := flags.Duration("rest", 2*time.Minute, "how long to count writes at rest")
	return func(ctx context.Context) error {
		switch {
		case *n == 0:
			return benchRelease(ctx, *rounds)
		case *lives:
			return benchLife(ctx, size{*n, *pods}, *living, *rest)
		}
		return benchGrowth(ctx, size{*n, *pods}, *rest)
	}
}
