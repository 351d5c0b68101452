// SPDX-License-Identifier: Apache-2.0

// Command evenkeel-workloads distributes the replicas of Balancers over their targets, and federated autoscalers over
// clusters. It knows nothing of machines.
package main

import (
	"context"
	"os"

	"github.com/evenkeel/evenkeel/cmd/evenkeel-workloads/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() {
	options := app.NewOptions()
	flags := options.Flags()
	os.Exit(daemon.Main(daemon.Program{
		Name: app.Name, Flags: flags, Help: func() { app.PrintUsage(os.Stdout, flags) },
		PrintVersion: &options.PrintVersion, Version: app.Version(), Validate: options.Validate,
		Run: func(ctx context.Context) error { return app.Run(ctx, options) },
	}))
}
