// SPDX-License-Identifier: Apache-2.0

// Command reserve measures on a local cluster of virtual machines what a reserve costs, beside a
// bare client that does the least that is needed, in the same run. It is a benchmark: it judges
// nothing.
//
// Without -n it measures a release: from the answer to who raised replicas until a watch shows a
// Node of the reserve without its taint. The floor is a client that sees one watch event and
// answers it with one patch of a Node.
//
// With -n it measures a reserve that comes to a fleet of so many machines: how soon its machines
// and Nodes carry the mark, the memory and time of the process, both beside stock
// machine-controller-manager that gets as many replicas, and what is written when nobody wants
// anything any more.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench-reserve: ")
	n := flag.Int("n", 0, "machines of a fleet that gets a reserve; 0: measure a release")
	rounds := flag.Int("rounds", 50, "releases to measure")
	rest := flag.Duration("rest", 2*time.Minute, "how long to look for writes at rest")
	flag.Parse()
	if err := run(*n, *rounds, *rest); err != nil {
		log.Fatal(err)
	}
}

func run(n, rounds int, rest time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if n == 0 {
		return benchRelease(ctx, rounds)
	}
	return benchGrowth(ctx, n, rest)
}
