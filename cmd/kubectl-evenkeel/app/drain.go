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
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/evenkeel/evenkeel/internal/drain"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
	"github.com/evenkeel/evenkeel/internal/plural"
)

// drainOptions are the options of drain-reserve.
type drainOptions struct {
	*options
	yes, wait, undo bool
	timeout         time.Duration
	// interval between two checks.
	interval time.Duration
}

func newDrainReserve(o *options) *cobra.Command {
	d := &drainOptions{options: o, interval: time.Second}
	c := &cobra.Command{
		Use:   "drain-reserve",
		Short: "Remove all reserves without affecting workload, before you return to stock machine-controller-manager",
		Long: `Remove all reserves without affecting workload, before you return to stock machine-controller-manager.

The command sets the annotation evenkeel.machine.sapcloud.io/drain-reserve on each MachineDeployment. It overrides everything
that requests a reserve. --undo removes the annotations, and the reserves are created again. A
MachineDeployment that is created later has a reserve, so run the command again before you replace the image.

You can interrupt the command at any time, and run it again.`,
		Example: `  # Remove all reserves of the namespace, and show the progress
  kubectl evenkeel drain-reserve --wait

  # Restore them
  kubectl evenkeel drain-reserve --undo --yes`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return d.run(c.Context()) },
	}
	flags := c.Flags()
	flags.BoolVarP(&d.yes, "yes", "y", false, "do not ask for confirmation")
	flags.BoolVar(&d.wait, "wait", false, "wait until no reserve is left (with --undo: until all exist again), and show the progress")
	flags.BoolVar(&d.undo, "undo", false, "remove the annotations, so that the reserves are created again")
	flags.DurationVar(&d.timeout, "timeout", 0, "longest time to wait; 0 means no limit")
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
	d, err := drain.New(control, namespace, "kubectl-evenkeel")
	if err != nil {
		return err
	}
	before, err := d.Progress(ctx)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return errors.New("no MachineDeployments found: try another --namespace, or -A")
	}
	if sure, err := o.confirm(ctx, before); err != nil || !sure {
		return err
	}
	if err := d.Annotate(ctx, before, !o.undo); err != nil {
		return err
	}
	if o.wait {
		if err := o.follow(ctx, d, before); err != nil {
			return err
		}
	}
	o.printNextSteps()
	return nil
}

// confirm asks the user, unless --yes is set.
func (o *drainOptions) confirm(ctx context.Context, before drain.Progress) (bool, error) {
	if o.yes {
		return true, nil
	}
	question := fmt.Sprintf("Remove the reserve of %s, %s in total?", plural.Of(len(before), "MachineDeployment"), plural.Of(before.Machines(), "machine"))
	if o.undo {
		question = fmt.Sprintf("Restore the reserve of %s?", plural.Of(len(before.Drained()), "MachineDeployment"))
	}
	fmt.Fprintf(o.Out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(o.interruptibleInput(ctx)).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return true, nil
	}
	if err != nil {
		fmt.Fprintln(o.Out)
		return false, errors.New("no answer, so nothing was changed; to confirm without being asked, use --yes")
	}
	fmt.Fprintln(o.Out, "Nothing was changed.")
	return false, nil
}

// follow prints changes until the drain is done. Latest is the progress before it.
func (o *drainOptions) follow(ctx context.Context, d *drain.Drain, latest drain.Progress) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	var printed drain.Progress
	for silent := false; ; {
		now, err := d.Progress(ctx)
		switch {
		case err != nil && ctx.Err() == nil && isRefused(err):
			return err
		case err != nil && ctx.Err() == nil && !silent:
			fmt.Fprintln(o.ErrOut, screen.Sanitize("Note: cannot read the progress, retrying: "+err.Error()+"."))
		case err == nil:
			for _, line := range now.Changes(printed, o.undo) {
				fmt.Fprintln(o.Out, screen.Sanitize(line))
			}
			if now.Done(o.undo) {
				return nil
			}
			latest, printed = now, now
		}
		silent = err != nil
		select {
		case <-ctx.Done():
			return o.interrupted(ctx, latest)
		case <-time.After(o.interval):
		}
	}
}

// isRefused reports whether it is no use to try a request again. Other errors pass: while a reserve
// drains, an API server may be replaced.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// interrupted describes what continues by itself.
func (o *drainOptions) interrupted(ctx context.Context, last drain.Progress) error {
	again := "run this command again to see the progress"
	if !o.undo {
		again += "; to undo it, run it with --undo"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not finished after %s: %s. The controller continues: %s", o.timeout, last.Pending(o.undo), again)
	}
	return fmt.Errorf("interrupted; the controller continues: %s", again)
}

// printNextSteps prints what to do after the drain.
func (o *drainOptions) printNextSteps() {
	switch {
	case o.undo && o.wait:
		fmt.Fprintln(o.Out, "The reserves exist again.")
	case o.undo:
		fmt.Fprintln(o.Out, "The controllers are restoring the reserves.")
	case o.wait:
		fmt.Fprintln(o.Out, "No reserve is left. Next, replace the image of machine-controller-manager with the stock one, and remove Evenkeel's flags.")
		fmt.Fprintln(o.Out, "To keep Evenkeel instead: kubectl evenkeel drain-reserve --undo")
	default:
		fmt.Fprintln(o.Out, "The controllers are removing the reserves. Before you replace the image, wait until none is left: kubectl evenkeel drain-reserve --wait --yes")
	}
}
