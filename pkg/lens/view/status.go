// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Spare is a reserve machine that has not become ready yet (V12). Nothing waits for it.
type Spare struct {
	// Updated reports whether its MachineSet is that of the current template.
	Updated bool
	// MachineSummary is what a status contains about the machine if its last operation failed.
	v1alpha1.MachineSummary
}

func (s Spare) failed() bool { return s.LastOperation.State == v1alpha1.MachineStateFailed }

// leftOut is what a stored status leaves out.
type leftOut struct {
	spares []Spare
	// missing is by how many machines the applied excess exceeds the reserve machines that are available.
	missing int32
}

// leftOut is nil where nothing is left out, as where no excess is applied.
func (c *Clientset) leftOut(d *v1alpha1.MachineDeployment) *leftOut {
	if _, applied := d.Annotations[machine.AppliedExcessAnnotation]; !applied || c.spares == nil {
		return nil
	}
	spares, ready := c.spares(d)
	excess := replicas(d) - max(0, pool.Workload(d, d.Spec.Replicas))
	out := leftOut{spares: spares, missing: max(0, excess-ready)}
	if len(out.spares) == 0 && out.missing == 0 {
		return nil
	}
	return &out
}

func (c *Clientset) showDeployment(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	shown := ShowDeployment(d)
	if out := c.leftOut(d); out != nil {
		shown.Status = out.added(shown)
	}
	return shown
}

func (c *Clientset) restoreDeployment(stored []byte, after *v1alpha1.MachineDeployment) ([]byte, error) {
	d := &v1alpha1.MachineDeployment{}
	if err := decode(stored, d); err != nil {
		return nil, err
	}
	if out := c.leftOut(d); out != nil {
		written := *after
		written.Status = out.removed(after, d.Status)
		after = &written
	}
	return RestoreDeployment(stored, after)
}

// added is the status of a view with what the stored status leaves out. Without it, machine-controller-manager would find its own
// write missing at each look, and take the difference for progress of a rollout.
func (l *leftOut) added(shown *v1alpha1.MachineDeployment) v1alpha1.MachineDeploymentStatus {
	status := l.counted(shown.Status, 1)
	status.FailedMachines = slices.Clone(status.FailedMachines)
	for _, spare := range l.spares {
		if spare.failed() {
			status.FailedMachines = append(status.FailedMachines, &spare.MachineSummary)
		}
	}
	if !enough(shown, 0) {
		status.Conditions = available(status.Conditions, v1alpha1.ConditionFalse)
	}
	return status
}

// removed is a status that machine-controller-manager has computed, without what is to be left out.
func (l *leftOut) removed(after *v1alpha1.MachineDeployment, stored v1alpha1.MachineDeploymentStatus) v1alpha1.MachineDeploymentStatus {
	status := l.counted(after.Status, -1)
	status.FailedMachines = slices.DeleteFunc(slices.Clone(status.FailedMachines), func(m *v1alpha1.MachineSummary) bool {
		return slices.ContainsFunc(l.spares, func(s Spare) bool { return s.Name == m.Name })
	})
	if enough(after, l.missing) {
		status.Conditions = unchanged(available(status.Conditions, v1alpha1.ConditionTrue), stored.Conditions)
	}
	return status
}

// counted adds to the numbers of a status what is left out, or takes it away. None of it is ready or available.
func (l *leftOut) counted(status v1alpha1.MachineDeploymentStatus, sign int32) v1alpha1.MachineDeploymentStatus {
	status.UnavailableReplicas = max(0, status.UnavailableReplicas+sign*l.missing)
	for _, spare := range l.spares {
		status.Replicas = max(0, status.Replicas+sign)
		if spare.Updated {
			status.UpdatedReplicas = max(0, status.UpdatedReplicas+sign)
		}
	}
	return status
}

// enough reports whether a MachineDeployment without so many spares has the availability that machine-controller-manager asks for.
func enough(shown *v1alpha1.MachineDeployment, spares int32) bool {
	strategy := shown.Spec.Strategy
	if stock.IsRollingUpdate(shown) && strategy.RollingUpdate == nil || stock.IsInPlaceUpdate(shown) && strategy.InPlaceUpdate == nil {
		return true // invalid, and machine-controller-manager does not look at it
	}
	needed := shown.Spec.Replicas - spares - stock.MaxUnavailable(*shown) - shown.Status.PreservedFailedReplicas
	return shown.Status.AvailableReplicas >= needed
}

// available are conditions that say of the availability what they are told to.
func available(conditions []v1alpha1.MachineDeploymentCondition, is v1alpha1.ConditionStatus) []v1alpha1.MachineDeploymentCondition {
	conditions = slices.Clone(conditions)
	for i, c := range conditions {
		if c.Type != v1alpha1.MachineDeploymentAvailable || c.Status == is {
			continue
		}
		c.Status, c.Reason, c.Message = is, stock.MinimumReplicasAvailable, "Deployment has minimum availability."
		if is == v1alpha1.ConditionFalse {
			c.Reason, c.Message = stock.MinimumReplicasUnavailable, "Deployment does not have minimum availability."
		}
		conditions[i] = c
	}
	return conditions
}

// unchanged returns conditions in which Available keeps its times if its status is the same as before.
func unchanged(conditions, before []v1alpha1.MachineDeploymentCondition) []v1alpha1.MachineDeploymentCondition {
	for i, c := range conditions {
		for _, was := range before {
			if c.Type == v1alpha1.MachineDeploymentAvailable && was.Type == c.Type && was.Status == c.Status {
				conditions[i] = was
			}
		}
	}
	return conditions
}
