// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// nodeChanged queues the machines of a Node whose update in place has made progress. The Machine shows
// that, too, but the store of Nodes may be later than that of Machines.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before == nil || after == nil || plan.SameUpdate(before, after) {
		return
	}
	for _, m := range stores.Indexed[*mcm.Machine](c.machines, stores.ByNode, after.Name) {
		c.machineChanged(nil, m)
	}
}
