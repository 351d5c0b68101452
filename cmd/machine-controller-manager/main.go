// SPDX-License-Identifier: Apache-2.0

// Command machine-controller-manager takes the place of Gardener's binary of the same name: the same flags, the same
// lease, the same controllers, unmodified, but behind the lens, so that they never act on a state older than their own
// writes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/cmd/machine-controller-manager/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() {
	err := run(daemon.Signals(), os.Args[1:])
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "machine-controller-manager:", err)
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
