// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// forceDeletion is the label with which Gardener deletes machines without a drain, before a cluster
// hibernates or is deleted.
const forceDeletion = "force-deletion"

// allLeaving reports whether the cluster hibernates, so that nothing in the namespace has replicas,
// or is being deleted, so that all machines have the label for that. If replicas include the
// reserve, it is deleted, too. A client that names a reserve machine may lower replicas to 0 as
// well, but they are restored, also if the machine is gone.
func (c *Controller) allLeaving(d *v1alpha1.MachineDeployment, machines []pool.Machine, namedGone bool) bool {
	forced := len(machines) > 0
	for _, m := range machines {
		forced = forced && m.Object.Labels[forceDeletion] == "True"
	}
	if forced || d.Spec.Replicas > 0 || namedGone || reserveNamed(d, machines) {
		return forced
	}
	for _, item := range c.stores.deployments.List() {
		if other, ok := item.(*v1alpha1.MachineDeployment); ok && other.Namespace == d.Namespace && other.Spec.Replicas > 0 {
			return false
		}
	}
	return true
}

// reserveNamed reports whether a reserve machine is named for deletion, and replicas may still have
// to be restored for it.
func reserveNamed(d *v1alpha1.MachineDeployment, machines []pool.Machine) bool {
	settled := plan.Returned(d)
	return slices.ContainsFunc(machines, func(m pool.Machine) bool {
		return m.Named && m.Marked() && !settled[m.Object.Name]
	})
}
