// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/internal/page"
	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/internal/read"
	"github.com/evenkeel/evenkeel/internal/overview"
)

func newUI(o *options) *cobra.Command {
	var port int
	var open bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "Show everything as a page in a browser, and keep it up to date",
		Long: `Show pools, zones, machines, the last hour, Balancers and federated autoscalers as a page in a browser, and keep it up to
date until the command is stopped.

The page is served on 127.0.0.1 alone, with the rights of the kubeconfig. It only reads. The address that is printed contains a
key: a browser that was not opened with it is refused. The last hour is what this command has seen since it was started.`,
		Example: `  # on a free port, which is printed
  kubectl evenkeel ui

  # all namespaces, on port 8899, and open a browser
  kubectl evenkeel ui -A --port 8899 --open`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.ui(c.Context(), port, open) },
	}
	c.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1; 0 means a free one")
	c.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return c
}

// ui serves the page until ctx ends, and returns when all that it started has ended.
func (o *options) ui(ctx context.Context, port int, open bool) error {
	clusters, err := o.connect()
	if err != nil {
		return err
	}
	listener, err := page.Listen(ctx, port)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	follower, err := clusters.Follow(following)
	if err != nil {
		_ = listener.Close() // nobody has come yet
		return err
	}
	defer func() { stop(); follower.Wait() }()
	server := page.New(o.place(clusters), o.source(follower), clock.RealClock{}, page.Pace)
	address := server.Address(listener)
	fmt.Fprintln(o.Out, address)
	if open {
		defer o.open(address)()
	}
	return server.Serve(ctx, listener)
}

func (o *options) source(follower *read.Follower) page.Source {
	return page.Source{
		Changed: follower.Changed(),
		Read: func() overview.Overview {
			objects := follower.Objects()
			objects.PoolLabels = o.poolLabels
			return overview.New(objects)
		},
	}
}

// place says in words what is looked at.
func (o *options) place(clusters read.Clusters) string {
	where := "all namespaces"
	if clusters.Namespace != "" {
		where = "namespace " + clusters.Namespace
	}
	if name := *o.config.Context; name != "" {
		return name + ", " + where
	}
	config, err := o.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil || config.CurrentContext == "" {
		return where
	}
	return config.CurrentContext + ", " + where
}
