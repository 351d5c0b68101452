// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"errors"
	"fmt"
)

// Options define how much templates may differ. Each field except PoolLabels is a flag of
// cluster-autoscaler with the same meaning; set both to the same values.
type Options struct {
	// MemoryRatio is the largest difference in memory capacity, as a fraction of the larger amount:
	// --memory-difference-ratio.
	MemoryRatio float64
	// AllocatableRatio is the same for each allocatable resource: --max-allocatable-difference-ratio.
	AllocatableRatio float64
	// FreeRatio is the same for what DaemonSets leave of each resource: --max-free-difference-ratio.
	FreeRatio float64
	// IgnoredLabels may differ or be absent, in addition to zone and hostname labels:
	// --balancing-ignore-label, repeatable.
	IgnoredLabels []string
	// BalancingLabels, if set, decide alone: templates are similar if they have all of them, with the
	// same values. Nothing else is compared: --balancing-label, repeatable; not with IgnoredLabels.
	BalancingLabels []string
	// PoolLabels make templates with the same taints similar that have the same value of any of these
	// labels, if it is not empty, whatever else differs. cluster-autoscaler does so on Azure; see
	// [AzurePoolLabels].
	PoolLabels []string
}

// Defaults are cluster-autoscaler's.
func Defaults() Options {
	return Options{MemoryRatio: 0.015, AllocatableRatio: 0.05, FreeRatio: 0.05}
}

// Validate returns what is invalid in the options. Options that it refuses are safe to use, but the
// results are meaningless.
func (o Options) Validate() error {
	var errs []error
	for _, r := range []struct {
		flag  string
		ratio float64
	}{
		{"--memory-difference-ratio", o.MemoryRatio},
		{"--max-allocatable-difference-ratio", o.AllocatableRatio},
		{"--max-free-difference-ratio", o.FreeRatio},
	} {
		// Not the same as r.ratio < 0 || r.ratio > 1: that lets NaN through.
		if !(r.ratio >= 0 && r.ratio <= 1) {
			errs = append(errs, fmt.Errorf("%s is %v: must be from 0 to 1", r.flag, r.ratio))
		}
	}
	if len(o.BalancingLabels) > 0 && len(o.IgnoredLabels) > 0 {
		errs = append(errs, errors.New("--balancing-label and --balancing-ignore-label exclude each other"))
	}
	return errors.Join(errs...)
}
