// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
)

// formats of -o; the empty one is the screen.
var formats = []string{"json", "yaml", "wide"}

func newStatus(o *options) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "status",
		Short: "Show pools, reserves, Balancers and federated autoscalers, and their problems",
		Long: `Show pools by zone with a block for each machine, Balancers and federated autoscalers with a bar for each target, and problems
with what to do about them.

R is the number of replicas, X the desired excess, and A the applied excess: the machines that are to run beyond R now.`,
		Example: `  # the namespace of the kubeconfig
  kubectl evenkeel status

  # all namespaces, each machine in a line
  kubectl evenkeel status -A -o wide`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.status(c.Context(), format) },
	}
	c.Flags().StringVarP(&format, "output", "o", "", "json, yaml or wide")
	complete(c, "output", formats...)
	return c
}

func (o *options) status(ctx context.Context, format string) error {
	if format != "" && !slices.Contains(formats, format) {
		return fmt.Errorf("--output %q is invalid: use %s", format, strings.Join(formats, ", "))
	}
	v, err := o.overview(ctx)
	if err != nil {
		return err
	}
	switch format {
	case "json", "yaml":
		return o.encode(v, format)
	}
	style := o.screenStyle()
	style.Wide = format == "wide"
	_, err = fmt.Fprintln(o.Out, strings.Join(screen.Status(v, style), "\n"))
	return err
}

// overview reads everything once and returns an overview.
func (o *options) overview(ctx context.Context) (overview.Overview, error) {
	objects, err := o.readObjects(ctx)
	if err != nil {
		return overview.Overview{}, err
	}
	return overview.New(objects), nil
}

// readObjects reads everything once.
func (o *options) readObjects(ctx context.Context) (overview.Objects, error) {
	clusters, err := o.connect()
	if err != nil {
		return overview.Objects{}, err
	}
	objects, err := clusters.ReadOnce(ctx)
	if err != nil {
		return objects, err
	}
	shown, _ := o.shownSettings(ctx) // the defaults where they cannot be read
	return shown.apply(objects), nil
}

// encode prints a value for programs.
func (o *options) encode(value any, format string) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if format == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("encode: %w", err)
		}
	}
	_, err = fmt.Fprintln(o.Out, strings.TrimRight(string(text), "\n"))
	return err
}
