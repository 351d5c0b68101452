// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/overview"
)

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
