// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/internal/drain"
)

// drainOptions are those of drain-reserve.
type drainOptions struct {
	*options
	yes, wait, undo bool
	timeout         time.Duration
	// interval between looks.
	interval time.Duration
}

func newDrainReserve(o *options) *cobra.Command {
	d := &drainOptions{options: o, interval: time.Second}
	c := &cobra.Command{
		Use:   "drain-reserve",
		Short: "Give up every reserve without touching workload, before stock machine-controller-manager takes over",
		Long: `Give up every reserve without touching workload, before stock machine-controller-manager takes over.

Each MachineDeployment is told by the annotation evenkeel.machine.sapcloud.io/drain-reserve that no reserve is wanted there,
whatever else asks for one. What is wished for stays as it is written: --undo takes the annotations away, and the reserves
come back. A MachineDeployment that is made later keeps its reserve, so run this again before the swap.

This command may be interrupted at any time, and run again.`,
		Example: `  # Give up all reserves of the namespace, and see how far that is
  kubectl evenkeel drain-reserve --wait

  # Take them up again
  kubectl evenkeel drain-reserve --undo --yes`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return d.run(c.Context()) },
	}
	flags := c.Flags()
	flags.BoolVarP(&d.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&d.wait, "wait", false, "wait until no reserve is left, and show the progress; with --undo, until the reserves are back")
	flags.BoolVar(&d.undo, "undo", false, "take the annotations away again")
	flags.DurationVar(&d.timeout, "timeout", 0, "how long to wait at most; 0 is for ever")
	return c
}

func (o *drainOptions) run(ctx context.Context) error {
	control, err := o.config.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, err := o.namespace()
	if err != nil {
		return err
	}
	d, err := drain.New(control, namespace)
	if err != nil {
		return err
	}
	before, err := d.Look(ctx)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return errors.New("there are no MachineDeployments here: look elsewhere with --namespace or -A")
	}
	if sure, err := o.sure(before); err != nil || !sure {
		return err
	}
	if err := d.Write(ctx, before, !o.undo); err != nil {
		return err
	}
	if o.wait {
		if err := o.follow(ctx, d); err != nil {
			return err
		}
	}
	o.next()
	return nil
}

// sure asks, unless told not to.
func (o *drainOptions) sure(before drain.Progress) (bool, error) {
	if o.yes {
		return true, nil
	}
	question := fmt.Sprintf("Give up the reserve of %d MachineDeployments, %d machines in all?", len(before), before.Machines())
	if o.undo {
		question = fmt.Sprintf("Have %d MachineDeployments take up their reserve again?", len(before.Drained()))
	}
	fmt.Fprintf(o.Out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(o.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return true, nil
	}
	if err != nil {
		fmt.Fprintln(o.Out)
		return false, errors.New("nobody answered: nothing was written; --yes does not ask")
	}
	fmt.Fprintln(o.Out, "Nothing was written.")
	return false, nil
}

// follow prints what has changed until all is done.
func (o *drainOptions) follow(ctx context.Context, d *drain.Drain) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	last := drain.Progress{}
	for {
		now, err := d.Look(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, line := range now.Since(last, o.undo) {
			fmt.Fprintln(o.Out, line)
		}
		if last = now; err == nil && now.Done(o.undo) {
			return nil
		}
		select {
		case <-ctx.Done():
			return o.interrupted(ctx, last)
		case <-time.After(o.interval):
		}
	}
}

// interrupted says what goes on by itself.
func (o *drainOptions) interrupted(ctx context.Context, last drain.Progress) error {
	again := "run this again to see how far it is"
	if !o.undo {
		again += "; --undo takes it back"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not done after %s: %s. The controller goes on: %s", o.timeout, last.Waits(o.undo), again)
	}
	return fmt.Errorf("interrupted: the controller goes on; %s", again)
}

// next says what to do now.
func (o *drainOptions) next() {
	switch {
	case o.undo && o.wait:
		fmt.Fprintln(o.Out, "The reserves are back.")
	case o.undo:
		fmt.Fprintln(o.Out, "The reserves come back.")
	case o.wait:
		fmt.Fprintln(o.Out, "No reserve is left. Next: swap the image of machine-controller-manager for the stock one, and take away the flags that it does not know.")
		fmt.Fprintln(o.Out, "To come back, or to stay: kubectl evenkeel drain-reserve --undo")
	default:
		fmt.Fprintln(o.Out, "The reserves are being given up. Wait until none is left before anything is swapped: kubectl evenkeel drain-reserve --wait --yes")
	}
}
