// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/evenkeel/evenkeel/internal/plugin/read"
)

// What the environment is asked.
var (
	Unicode = unicode
	Colors  = colors
)

// PlanSettings are the flags that plan adopts from a manager.
func PlanSettings() *pflag.FlagSet {
	p, own := &planOptions{options: newOptions(genericiooptions.NewTestIOStreamsDiscard())}, pflag.NewFlagSet("plan", pflag.ContinueOnError)
	p.addFlags(own)
	p.addPlanFlags(own)
	return p.withManagerFlags(own)
}

// RootAt is the command line with clusters that are given.
func RootAt(streams genericiooptions.IOStreams, clusters read.Clusters) *cobra.Command {
	o := newOptions(streams)
	o.connect = func() (read.Clusters, error) { return clusters, nil }
	return newRoot(o)
}
