// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/evenkeel/evenkeel/pkg/overview"
)

func newStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show everything on one screen",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			objects, err := clusters.Once(c.Context())
			if err != nil {
				return err
			}
			objects.PoolLabels = o.poolLabels
			encoder := json.NewEncoder(o.Out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(overview.New(objects))
		},
	}
}
