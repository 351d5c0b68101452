// SPDX-License-Identifier: Apache-2.0

// Command machine-controller runs machine-controller-manager's machine controller on a cloud whose
// machines are only Node objects. It replaces a cloud provider's sidecar, with the same flags and
// the same lease.
package main

import (
	"context"
	"os"

	"github.com/evenkeel/evenkeel/cmd/machine-controller/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() {
	options := app.NewOptions()
	flags := options.Flags()
	os.Exit(daemon.Main(daemon.Program{
		Name: "machine-controller", Flags: flags, Help: func() { app.PrintUsage(os.Stdout, flags) },
		PrintVersion: &options.PrintVersion, Version: app.Version(), Validate: options.Validate,
		Run: func(ctx context.Context) error { return app.Run(ctx, options) },
	}))
}
