// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"math"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Spares returns what the stock status of a MachineDeployment omits: the reserve machines that have
// not become ready yet, also if they are leaving. In a cluster that hibernates or is deleted, nothing
// is omitted, because Gardener reads from the status whether all machines are gone.
func (c *Controller) Spares(stored *mcm.MachineDeployment) view.Reserve {
	nothing := view.Reserve{Ready: math.MaxInt32}
	d := c.latest.Deployment(keyOf(stored))
	if d == nil || d.UID != stored.UID {
		return nothing
	}
	s := pool.Outline(d, c.latest, c.clock.Now())
	if c.allLeaving(d, s.Machines, false) {
		return nothing
	}
	current := pool.CurrentSet(d, s.Sets)
	r := view.Reserve{Machines: countMachines(s.Machines, current), Counted: c.latest.counted(d, current)}
	for _, m := range s.Machines {
		switch {
		case !m.Marked():
		case m.Leaving():
			if !m.Registered() {
				r.Starting = append(r.Starting, view.Spare{Leaving: true, MachineSummary: mcm.MachineSummary{Name: m.Object.Name}})
			}
		case m.Ready():
			r.Ready++
		case starting(m.Object):
			r.Starting = append(r.Starting, view.Spare{Updated: m.Set == current, MachineSummary: summary(m.Object)})
		}
	}
	return r
}

// countMachines counts machines as machine-controller-manager counts those of a MachineSet.
func countMachines(machines []pool.Machine, current string) (n view.Counts) {
	for _, m := range machines {
		n.All++
		if m.Set == current {
			n.Updated++
		}
		if m.Ready() && !pool.BeingDeleted(m.Object) {
			n.Available++
		}
	}
	return n
}

// counted returns what the statuses of the MachineSets count, from which machine-controller-manager
// computes that of their MachineDeployment. It updates them after machines were created or have
// become ready.
func (l *latest) counted(d *v1alpha1.MachineDeployment, current string) (n view.Counts) {
	for _, set := range l.seenSets(d) {
		n.All += set.Status.Replicas
		n.Available += set.Status.AvailableReplicas
		if set.Name == current {
			n.Updated += set.Status.Replicas
		}
	}
	return n
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
