// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/overview"
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

// FollowDraining follows whether the manager of a namespace gives up all reserves, until ctx ends.
func FollowDraining(ctx context.Context, kubeconfig string, config *rest.Config, namespace string) (draining func() bool, wait func()) {
	o := newOptions(genericiooptions.NewTestIOStreamsDiscard())
	*o.config.KubeConfig = kubeconfig
	o.config.WithWrapConfigFn(func(*rest.Config) *rest.Config { return config })
	f := o.followSettings(ctx)
	return func() bool { return f.apply(overview.Objects{}).Draining[namespace] }, f.wait
}

// RootOn is the command line whose kubeconfig leads to a cluster that is given.
func RootOn(streams genericiooptions.IOStreams, config *rest.Config) *cobra.Command {
	o := newOptions(streams)
	o.config.WithWrapConfigFn(func(*rest.Config) *rest.Config { return config })
	return newRoot(o)
}

// NoteSkew is what is said of two versions.
func NoteSkew(plugin, manager string) string {
	streams, _, _, text := genericiooptions.NewTestIOStreams()
	newOptions(streams).noteSkew(plugin, manager)
	return text.String()
}
