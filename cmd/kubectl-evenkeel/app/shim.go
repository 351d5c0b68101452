// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/spf13/cobra"
)

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
			Short: "Generate the script that completes kubectl evenkeel",
			Long: `Generate the script that completes kubectl evenkeel: kubectl runs the program kubectl_complete-evenkeel if it is in the PATH.
Completion of kubectl itself must be set up in the shell.`,
			Example: `  # beside the plugin
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
