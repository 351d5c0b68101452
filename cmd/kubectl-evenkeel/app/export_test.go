// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/internal/read"
)

// What the environment is asked.
var (
	Unicode = unicode
	Colors  = colors
)

// RootAt is the command line with clusters that are given.
func RootAt(streams genericiooptions.IOStreams, clusters read.Clusters) *cobra.Command {
	o := newOptions(streams)
	o.connect = func() (read.Clusters, error) { return clusters, nil }
	return newRoot(o)
}
