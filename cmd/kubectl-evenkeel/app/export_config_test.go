// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/overview"
)

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
