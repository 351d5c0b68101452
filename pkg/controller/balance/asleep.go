// SPDX-License-Identifier: Apache-2.0

package balance

import "slices"

// asleep reports whether the cluster is hibernated, or about to be. Where the Cluster resource cannot be read, it is while Gardener
// wants nothing to run: replicas of all MachineDeployments are 0, or all Machines are to be deleted by force, which comes first.
func (r *round) asleep() bool {
	if !r.Garden.Here || r.Garden.ClusterKnown {
		return r.Garden.Hibernated
	}
	its := slices.DeleteFunc(slices.Clone(r.zones), func(z *zone) bool { return !z.gardeners() || z.Object.DeletionTimestamp != nil })
	wants := slices.ContainsFunc(its, func(z *zone) bool { return z.Object.Spec.Replicas > 0 })
	return len(its) > 0 && (!wants || condemned(its))
}

// condemned reports whether all Machines, and there are some, are to be deleted by force.
func condemned(zones []*zone) bool {
	some := false
	for _, z := range zones {
		for _, m := range z.Machines {
			if m.Object.Labels["force-deletion"] != "True" {
				return false
			}
			some = true
		}
	}
	return some
}
