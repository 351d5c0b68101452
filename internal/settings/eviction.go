// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Eviction contains the flags that define which pods may be evicted when a machine is drained or
// moved. They have cluster-autoscaler's names and defaults.
type Eviction struct {
	skipSystem, skipLocalStorage bool
}

// AddFlags defines the flags.
func (e *Eviction) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&e.skipSystem, "skip-nodes-with-system-pods", true,
		"Neither drain nor move machines with pods of kube-system that have no PodDisruptionBudget and are younger than 1 hour. Pods of DaemonSets and mirror pods do not count.")
	flags.BoolVar(&e.skipLocalStorage, "skip-nodes-with-local-storage", true,
		"Neither drain nor move machines with pods that have local storage: a hostPath, or an emptyDir that is not in memory. Volumes in the annotation "+pool.SafeToEvictLocalVolumes+" do not count.")
}

// Rule returns the rule that the flags define.
func (e *Eviction) Rule() pool.EvictionRule {
	return pool.EvictionRule{SystemPods: !e.skipSystem, LocalStorage: !e.skipLocalStorage}
}
