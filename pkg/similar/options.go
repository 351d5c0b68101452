// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"errors"
	"fmt"
)

// Options say how much templates may differ. Each field but PoolLabels is a flag of cluster-autoscaler of the same
// meaning; give both the same values.
type Options struct {
	// MemoryRatio is how far memory may differ in capacity, as a part of the larger: --memory-difference-ratio.
	MemoryRatio float64
	// AllocatableRatio is the same for each allocatable resource: --max-allocatable-difference-ratio.
	AllocatableRatio float64
	// FreeRatio is the same for what DaemonSets leave of each resource: --max-free-difference-ratio.
	FreeRatio float64
	// IgnoredLabels may differ or lack, besides those of zone and hostname: --balancing-ignore-label, repeatable.
	IgnoredLabels []string
	// BalancingLabels, if any, decide alone: similar is who has all of them, with the same values. Nothing else is
	// looked at: --balancing-label, repeatable; not together with IgnoredLabels.
	BalancingLabels []string
	// PoolLabels make templates with the same taints similar, whatever else differs, if both have the same value, not an empty one, of
	// any of these labels.
	// cluster-autoscaler does so on Azure; see [AzurePoolLabels].
	PoolLabels []string
}

// Defaults are cluster-autoscaler's.
func Defaults() Options {
	return Options{MemoryRatio: 0.015, AllocatableRatio: 0.05, FreeRatio: 0.05}
}

// Validate says what in the options makes no sense. Options that it refuses are safe to use; the answers are of no use.
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
