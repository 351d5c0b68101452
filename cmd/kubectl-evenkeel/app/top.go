// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/live"
)

func newTop(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Show the status live",
		Long: `Show the status live, with up to two updates per second.

Keys: q quits; j, k, space, b, g and G scroll, and so do the arrow keys; w lists each machine.`,
		Example: `  # the namespace of the kubeconfig
  kubectl evenkeel top

  # all namespaces, machines in one cluster and their Nodes in another
  kubectl evenkeel top -A --target-kubeconfig=shoot.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.runTop(c.Context()) },
	}
}

// errNoTerminal means that the output is not a terminal.
var errNoTerminal = errors.New("top needs a terminal: for pipes and files, use kubectl evenkeel status")

func (o *options) runTop(ctx context.Context) error {
	out, terminal := o.terminal()
	in, ok := o.In.(*os.File)
	if !terminal || !ok || !term.IsTerminal(int(in.Fd())) || os.Getenv("TERM") == "dumb" {
		return errNoTerminal
	}
	clusters, err := o.connect()
	if err != nil {
		return err
	}
	// Nothing else may be printed on the screen.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	follower, err := clusters.Follow(ctx)
	if err != nil {
		return err
	}
	shown := o.followSettings(ctx) // this may take a while, in which Ctrl-C still works
	defer func() { stop(); follower.Wait(); shown.wait() }()
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	view := &live.View{
		Look: func() overview.Overview {
			return overview.New(shown.apply(follower.Objects()))
		},
		Changed: follower.Changed(), Keys: in, Out: out, Style: o.screenStyle(), Clock: clock.RealClock{},
		Size: func() (columns, lines int) {
			columns, lines, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return usualWidth, usualHeight
			}
			return columns, lines
		},
	}
	err = view.Run(ctx)
	return errors.Join(err, term.Restore(int(in.Fd()), was))
}
