// SPDX-License-Identifier: Apache-2.0

// Command machine-controller-manager replaces Gardener's binary of the same name, with the same flags
// and the same lease. It runs MachineDeployments and MachineSets, and keeps spare machines ready.
package main

import (
	"context"
	"os"

	"github.com/evenkeel/evenkeel/cmd/machine-controller-manager/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() {
	options := app.NewOptions()
	flags := options.Flags()
	os.Exit(daemon.Main(daemon.Program{
		Name: "machine-controller-manager", Flags: flags, Help: func() { app.PrintUsage(os.Stdout, flags) },
		PrintVersion: &options.PrintVersion, Version: app.Version(), Validate: options.Validate,
		Run: func(ctx context.Context) error { return app.Run(ctx, options) },
	}))
}
