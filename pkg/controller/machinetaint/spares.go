// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"math"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Spares returns the reserve machines of a MachineDeployment that have not become ready yet, which
// its stock status omits, also if they are leaving, and the number of ready ones. In a cluster that
// hibernates or is deleted, nothing is omitted, because Gardener reads from the status whether all
// machines are gone.
func (c *Controller) Spares(stored *mcm.MachineDeployment) (spares []view.Spare, ready int32) {
	d := c.latest.Deployment(keyOf(stored))
	if d == nil || d.UID != stored.UID {
		return nil, math.MaxInt32
	}
	s := pool.Outline(d, c.latest, c.clock.Now())
	if c.allLeaving(d, s.Machines, false) {
		return nil, math.MaxInt32
	}
	current := pool.CurrentSet(d, s.Sets)
	for _, m := range s.Machines {
		switch {
		case !m.Marked():
		case m.Leaving():
			if !m.Registered() {
				spares = append(spares, view.Spare{Leaving: true, MachineSummary: mcm.MachineSummary{Name: m.Object.Name}})
			}
		case m.Ready():
			ready++
		case starting(m.Object):
			spares = append(spares, view.Spare{Updated: m.Set == current, MachineSummary: summary(m.Object)})
		}
	}
	return spares, ready
}

// starting reports whether a machine is being created, or could not be.
func starting(m *mcm.Machine) bool {
	switch m.Status.CurrentStatus.Phase {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return true
	case mcm.MachineFailed:
		return m.Status.LastOperation.Type == mcm.MachineOperationCreate
	}
	return false
}

// summary returns what machine-controller-manager writes into a status about a machine whose last
// operation failed.
func summary(m *mcm.Machine) mcm.MachineSummary {
	s := mcm.MachineSummary{Name: m.Name, ProviderID: m.Spec.ProviderID, LastOperation: m.Status.LastOperation}
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		s.OwnerRef = owner.Name
	}
	return s
}
