// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// Program is a daemon's command line.
type Program struct {
	Name  string
	Flags *pflag.FlagSet
	// Help prints how to use it.
	Help func()
	// PrintVersion is set by a flag. Then Version is printed, and nothing else happens.
	PrintVersion *bool
	Version      string
	// Validate checks the options that the flags have set.
	Validate func() error
	// Run works until ctx ends.
	Run func(ctx context.Context) error
}

// Main runs a program with the arguments of the process until a signal ends it, and returns the
// exit code of the process. If the program fails, Main prints the error.
func Main(p Program) (exitCode int) {
	err := p.execute(Signals(), os.Args[1:])
	klog.Flush()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

func (p Program) execute(ctx context.Context, arguments []string) error {
	switch err := p.Flags.Parse(arguments); {
	case errors.Is(err, pflag.ErrHelp):
		p.Help()
		return nil
	case err != nil:
		return fmt.Errorf("%w (see --help)", err)
	case *p.PrintVersion:
		fmt.Println(p.Version)
		return nil
	}
	if err := p.Validate(); err != nil {
		return err
	}
	return p.Run(klog.NewContext(ctx, klog.Background()))
}
