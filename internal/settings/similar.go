// SPDX-License-Identifier: Apache-2.0

// Package settings contains the flags that the controllers and a preview of them have in common,
// and publishes the values of a manager, so that users need not repeat them.
package settings

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/pkg/similar"
)

// Similar contains the flags that define which MachineDeployments are similar.
type Similar struct {
	given similar.Options
	// cloud adds the labels that cluster-autoscaler knows for that cloud.
	cloud string
}

// clouds contains labels that differ between similar groups, and labels that name pools.
var clouds = map[string]struct{ ignored, pools []string }{
	"":      {},
	"aws":   {ignored: similar.AWSLabels()},
	"azure": {ignored: similar.AzureLabels(), pools: similar.AzurePoolLabels()},
}

// AddFlags defines the flags, with cluster-autoscaler's defaults.
func (s *Similar) AddFlags(flags *pflag.FlagSet) {
	o := &s.given
	*o = similar.Defaults()
	flags.Float64Var(&o.MemoryRatio, "memory-difference-ratio", o.MemoryRatio, "Largest difference in memory between similar MachineDeployments, as a fraction of the larger amount.")
	flags.Float64Var(&o.AllocatableRatio, "max-allocatable-difference-ratio", o.AllocatableRatio, "Largest difference in each allocatable resource, as a fraction of the larger amount.")
	flags.Float64Var(&o.FreeRatio, "max-free-difference-ratio", o.FreeRatio, "Largest difference in what DaemonSets leave of each allocatable resource, as a fraction of the larger amount.")
	flags.StringSliceVar(&o.IgnoredLabels, "balancing-ignore-label", nil, "Label that similar MachineDeployments may differ in, in addition to zone and hostname labels. Repeatable.")
	flags.StringSliceVar(&o.BalancingLabels, "balancing-label", nil, "If set, MachineDeployments are similar if they have the same values of all these labels, and the same taints; nothing else is compared. Repeatable.")
	flags.StringSliceVar(&o.PoolLabels, "similar-pool-label", nil,
		"Node label that makes MachineDeployments with the same value and the same taints similar, whatever else differs. Repeatable.")
	flags.StringVar(&s.cloud, "similar-cloud", "",
		"Cloud whose rules apply, as in cluster-autoscaler: aws and azure ignore the labels that differ between their zones and pools; azure adds agentpool and kubernetes.azure.com/agentpool to --similar-pool-label.")
}

// Options returns the options that the flags define.
func (s *Similar) Options() similar.Options {
	o, cloud := s.given, clouds[s.cloud]
	o.IgnoredLabels = slices.Concat(o.IgnoredLabels, cloud.ignored)
	o.PoolLabels = slices.Concat(o.PoolLabels, cloud.pools)
	return o
}

// Validate returns everything that is wrong, by flag.
func (s *Similar) Validate() error {
	errs := []error{s.Options().Validate()}
	if _, known := clouds[s.cloud]; !known {
		errs = append(errs, fmt.Errorf("--similar-cloud: %q is unknown; write aws, azure, or nothing", s.cloud))
	}
	return errors.Join(errs...)
}
