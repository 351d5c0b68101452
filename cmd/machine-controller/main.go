// SPDX-License-Identifier: Apache-2.0

// Command machine-controller runs machine-controller-manager's machine controller on a cloud whose machines are only
// Node objects. It stands where a cloud provider's sidecar stands: the same flags, the same lease.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/cmd/machine-controller/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() {
	err := run(daemon.Signals(), os.Args[1:])
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "machine-controller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	options := app.NewOptions()
	flags := options.Flags()
	switch err := flags.Parse(arguments); {
	case errors.Is(err, pflag.ErrHelp):
		app.PrintUsage(os.Stdout, flags)
		return nil
	case err != nil:
		return fmt.Errorf("%w (see --help)", err)
	case options.PrintVersion:
		fmt.Println(app.Version())
		return nil
	}
	if err := options.Validate(); err != nil {
		return err
	}
	return app.Run(klog.NewContext(ctx, klog.Background()), options)
}
