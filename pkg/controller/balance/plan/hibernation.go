// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// hibernated reports whether the cluster is hibernated, or about to be. If the Cluster resource
// cannot be read, the cluster counts as hibernated while Gardener wants nothing to run: replicas of
// all MachineDeployments are 0, or all Machines are to be deleted by force, which happens first.
func (r *round) hibernated() bool {
	if !r.Garden.Here || r.Garden.ClusterKnown {
		return r.Garden.Hibernated
	}
	its := slices.DeleteFunc(slices.Clone(r.zones), func(z *zone) bool { return !z.ownedByGardener() || z.Object.DeletionTimestamp != nil })
	wants := slices.ContainsFunc(its, func(z *zone) bool { return z.Object.Spec.Replicas > 0 })
	return len(its) > 0 && (!wants || forceDeleted(its))
}

// forceDeleted reports whether there are Machines, and all of them are to be deleted by force.
func forceDeleted(zones []*zone) bool {
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
