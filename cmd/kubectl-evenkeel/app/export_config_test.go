// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// RootOn is the command line whose kubeconfig leads to a cluster that is given.
func RootOn(streams genericiooptions.IOStreams, config *rest.Config) *cobra.Command {
	o := newOptions(streams)
	o.config.WithWrapConfigFn(func(*rest.Config) *rest.Config { return config })
	return newRoot(o)
}
