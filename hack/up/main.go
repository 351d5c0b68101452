// SPDX-License-Identifier: Apache-2.0

// Up runs a local cluster with Evenkeel in it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

const usage = `A local Kubernetes cluster with Evenkeel in it, on loopback, state in .local/clusters/<name>.

usage: go run ./hack/up <command> [flags]

commands:
  up      build what is not built, start what does not run, install the CRDs, print how to go on
  status  what runs
  down    stop all of it, keep the data
  reset   stop all of it, forget the data
  build   build the control plane's binaries and nothing more

$KUBERNETES is the version of Kubernetes, such as 1.34. hack/localcluster/versions has one file for each.

flags:
`

// options of all commands; not each of them looks at all.
type options struct {
	name  string
	audit bool
	brief bool
	nodes string
}

var commands = map[string]func(context.Context, options) error{
	"up":     up,
	"status": status,
	"down":   func(_ context.Context, o options) error { return down(o, (*localcluster.Cluster).Stop) },
	"reset":  func(_ context.Context, o options) error { return down(o, (*localcluster.Cluster).Reset) },
	"build":  func(ctx context.Context, _ options) error { return localcluster.Build(ctx, "", os.Stdout) },
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := options{name: os.Getenv("CLUSTER")}
	if o.name == "" {
		o.name = localcluster.DefaultName
	}
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.StringVar(&o.name, "name", o.name, "the cluster; default: $CLUSTER, else "+localcluster.DefaultName)
	flags.BoolVar(&o.audit, "audit", false, "up: log every API request to audit.log in the cluster's folder")
	flags.BoolVar(&o.brief, "brief", false, "up: do not say how to go on")
	flags.StringVar(&o.nodes, "nodes", "", "up: \"real\" to have machines with kubelets, too, whose MachineClass says so; needs Linux and root")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	command := ""
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	do, ok := commands[command]
	if !ok || flags.NArg() > 0 {
		flags.Usage()
		return fmt.Errorf("no such command: %q", append([]string{command}, flags.Args()...))
	}
	return do(ctx, o)
}
