// SPDX-License-Identifier: Apache-2.0

// Package app contains the plugin's commands, one file each.
package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/version"
)

// NewRoot returns the whole command line.
func NewRoot(streams genericiooptions.IOStreams) *cobra.Command { return newRoot(newOptions(streams)) }

func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-evenkeel",
		Short: "Inspect machines, reserves, Balancers and federated autoscalers",
		Long: `Inspect machines, reserves, Balancers and federated autoscalers.

The commands use the namespace of the kubeconfig, or all namespaces with -A. If the Nodes and pods are in another cluster, set
--target-kubeconfig.`,
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
	root.AddCommand(newStatus(o), newExplain(o), newTop(o), newUI(o), newPlan(o), newSize(o), newDrainReserve(o), newVersion(o))
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

// completionPatience limits how long a shell waits for names.
const completionPatience = 3 * time.Second

// complete offers the values of a flag.
func complete(c *cobra.Command, flag string, values ...string) {
	err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag has just been created
	}
}

// completeSubjects completes kinds, and then the names of existing objects.
func (o *options) completeSubjects(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		var kinds []cobra.Completion
		for _, s := range subjects {
			kinds = append(kinds, s.names[0])
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp
	case 1:
		kind, err := subjectOf(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.completeNames(c, kind.list)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeNames completes the names of existing objects.
func (o *options) completeNames(c *cobra.Command, list func(overview.Objects) []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionPatience)
	defer cancel()
	objects, err := o.readObjects(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return list(objects), cobra.ShellCompDirectiveNoFileComp
}

// namesOf returns the sorted names of objects.
func namesOf[T metav1.Object](objects []T) []string {
	names := make([]string, 0, len(objects))
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shim is what kubectl runs as kubectl_complete-evenkeel to complete kubectl evenkeel.
const shim = `#!/bin/sh
exec kubectl evenkeel __complete "$@"
`

// addShim makes the completion command print it, in addition to the scripts for shells.
func addShim(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.AddCommand(&cobra.Command{
			Use:   "kubectl",
			Short: "Generate the completion script for kubectl evenkeel",
			Long: `Generate the completion script kubectl_complete-evenkeel, which kubectl runs if it is in the PATH. The shell must have
completion for kubectl itself.`,
			Example: `  # Next to the plugin
  kubectl evenkeel completion kubectl > ~/bin/kubectl_complete-evenkeel
  chmod +x ~/bin/kubectl_complete-evenkeel`,
			Args:              cobra.NoArgs,
			ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(c *cobra.Command, _ []string) error {
				_, err := fmt.Fprint(c.OutOrStdout(), shim)
				return err
			},
		})
	}
}
