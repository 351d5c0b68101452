// SPDX-License-Identifier: Apache-2.0

// Command bench runs one benchmark, or lists all of them. A benchmark passes no judgement.
//
//	go run ./test/bench CASE [flags]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenkeel/evenkeel/test/bench/balancer"
	"github.com/evenkeel/evenkeel/test/bench/footprint"
	"github.com/evenkeel/evenkeel/test/bench/large"
	"github.com/evenkeel/evenkeel/test/bench/nodegroup"
	"github.com/evenkeel/evenkeel/test/bench/plugin"
	"github.com/evenkeel/evenkeel/test/bench/release"
	"github.com/evenkeel/evenkeel/test/bench/reserve"
	"github.com/evenkeel/evenkeel/test/bench/scale"
	"github.com/evenkeel/evenkeel/test/bench/size"
	"github.com/evenkeel/evenkeel/test/bench/ui"
)

// benchmark defines its flags and returns what runs it.
type benchmark struct {
	name, summary string
	new           func(*flag.FlagSet) func(context.Context) error
}

var benchmarks = []benchmark{
	{"balancer", "how soon a Balancer scales its targets, with 30,000 pods", balancer.New},
	{"footprint", "memory, CPU and requests of machine-controller-manager, stock and Evenkeel's", footprint.New},
	{"large", "how long decisions take with 5,000 machines, beside 500", large.New},
	{"nodegroup", "how long cluster-autoscaler waits for the node group server", nodegroup.New},
	{"plugin", "time and memory of kubectl evenkeel", plugin.New},
	{"release", "how long pods wait, with a reserve and without one", release.New},
	{"reserve", "how soon a machine leaves the reserve; with -n, the cost of a reserve", reserve.New},
	{"scale", "machines up and down, stock and Evenkeel's", scale.New},
	{"size", "what reserve is suggested for synthetic weeks", size.New},
	{"ui", "how soon the plugin's page shows a change", ui.New},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) > 1 {
		for _, b := range benchmarks {
			if b.name == os.Args[1] {
				b.run(os.Args[2:])
				return
			}
		}
	}
	fmt.Fprintln(os.Stderr, "Usage: go run ./test/bench CASE [flags]")
	for _, b := range benchmarks {
		fmt.Fprintf(os.Stderr, "  %-10s %s\n", b.name, b.summary)
	}
	os.Exit(2)
}

// run ends the process if the benchmark fails.
func (b benchmark) run(args []string) {
	log.SetPrefix("bench " + b.name + ": ")
	flags := flag.NewFlagSet("bench "+b.name, flag.ExitOnError)
	measure := b.new(flags)
	_ = flags.Parse(args) // it exits on an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
