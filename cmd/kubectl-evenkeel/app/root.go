// SPDX-License-Identifier: Apache-2.0

// Package app contains the plugin's commands, one file each.
package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/evenkeel/evenkeel/internal/version"
)

// NewRoot returns the whole command line.
func NewRoot(streams genericiooptions.IOStreams) *cobra.Command { return newRoot(newOptions(streams)) }

func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-evenkeel",
		Short: "Inspect machines, reserves, Balancers and federated autoscalers",
		Long: `Inspect machines, reserves, Balancers and federated autoscalers.

The commands read MachineDeployments in the namespace that kubectl would use, or in all namespaces with -A. If the Nodes and
pods are in another cluster, set --target-kubeconfig.`,
		Version:       version.Line("kubectl-evenkeel"),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl evenkeel"},
		SilenceUsage:  true,
		SilenceErrors: true,
		// As cobra does for subcommands.
		SuggestionsMinimumDistance: 2,
		Args:                       rejectUnknownCommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(o.In)
	root.SetOut(o.Out)
	root.SetErr(o.ErrOut)
	o.addFlags(root.PersistentFlags())
	root.AddCommand(newStatus(o), newExplain(o), newTop(o), newUI(o), newPlan(o), newSize(o), newDrainReserve(o))
	addShim(root)
	return root
}

// rejectUnknownCommand returns an error for a word that is not a command.
func rejectUnknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q: see kubectl evenkeel --help", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("unknown command %q: did you mean %s?", args[0], near[0])
	}
	return err
}
