// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

// hibernated reports whether the cluster is hibernated, or about to be. If the Cluster resource
// cannot be read, the cluster counts as hibernated while Gardener wants nothing to run: replicas of
// all MachineDeployments are 0, or all Machines are to be deleted by force, which happens first.
func (r *round) hibernated() bool {
	if r.Garden.ClusterKnown || r.Garden.Known && !r.Garden.Here {
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

// awaitsCluster reports whether it will soon be known whether the cluster is hibernated.
func (g Garden) awaitsCluster() bool { return g.ClusterAwaited || !g.Here && !g.Known }

// keepShares leaves the shares of a pool as they are, and what conditions say about them.
func keepShares(pool []*zone) {
	for _, z := range pool {
		z.keepShare()
		for _, c := range z.Object.Status.Conditions {
			if c.Type == ConditionShare {
				z.spread = verdict{status: c.Status == mcm.ConditionTrue, reason: c.Reason, message: c.Message}
			}
		}
	}
}

// keepShare leaves a share as it is, except for machines that are created for a move.
func (z *zone) keepShare() {
	if z.share != nil {
		z.setShare(max(0, *z.share-awaiting(z.move)) + awaiting(z.next.move))
	}
}
