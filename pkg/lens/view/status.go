// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Spare is a reserve machine that has not become ready yet (V12).
type Spare struct {
	// Updated reports whether its MachineSet is that of the current template.
	Updated bool
	// Leaving reports whether it is leaving: it counts as long as machine-controller-manager counts
	// it, but its failure, which MachineSets show for a while, is omitted.
	Leaving bool
	// MachineSummary is what a status contains about the machine if its last operation failed.
	v1alpha1.MachineSummary
}

func (s Spare) failed() bool { return s.LastOperation.State == v1alpha1.MachineStateFailed }

// Reserve describes the reserve of a MachineDeployment for its status.
type Reserve struct {
	// Starting are its machines that have not become ready yet, and Ready is the number of ready
	// ones, without leaving machines.
	Starting []Spare
	Ready    int32
	// Machines counts all machines of the MachineDeployment, Counted those that the statuses of its
	// MachineSets count already.
	Machines, Counted Counts
}

// Counts are numbers of machines: all, those of the current template, and those that are available.
type Counts struct{ All, Updated, Available int32 }

// omitted is what a stored status omits.
type omitted struct {
	spares []Spare
	// missing is by how many machines the applied excess exceeds the available reserve machines.
	missing int32
	// late are machines that the numbers do not count yet, so that they need not be omitted.
	late Counts
}

// omittedFrom returns nil if nothing is omitted, for example if no excess is applied. The numbers
// are those of a status that machine-controller-manager has computed, or that it would compute now.
func (c *Clientset) omittedFrom(d *v1alpha1.MachineDeployment, computed *v1alpha1.MachineDeploymentStatus) *omitted {
	if _, applied := d.Annotations[machine.AppliedExcessAnnotation]; !applied || c.spares == nil {
		return nil
	}
	r := c.spares(d)
	if computed != nil {
		r.Counted = Counts{computed.Replicas, computed.UpdatedReplicas, computed.AvailableReplicas}
	}
	late := Counts{
		max(0, r.Machines.All-r.Counted.All), max(0, r.Machines.Updated-r.Counted.Updated), max(0, r.Machines.Available-r.Counted.Available),
	}
	excess := visibleReplicas(d) - max(0, pool.Workload(d, d.Spec.Replicas))
	out := omitted{spares: r.Starting, missing: max(0, excess-max(0, r.Ready-late.Available)), late: late}
	if len(out.spares) == 0 && out.missing == 0 {
		return nil
	}
	return &out
}

func (c *Clientset) showDeployment(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	shown := ShowDeployment(d)
	if out := c.omittedFrom(d, nil); out != nil {
		shown.Status = out.statusWith(shown)
	}
	return shown
}

func (c *Clientset) restoreDeployment(stored []byte, after *v1alpha1.MachineDeployment) ([]byte, error) {
	d := &v1alpha1.MachineDeployment{}
	if err := decode(stored, d); err != nil {
		return nil, err
	}
	written := *after
	if out := c.omittedFrom(d, c.computed(d, after)); out != nil {
		written.Status = out.statusWithout(after, d.Status)
	}
	written.Status.Conditions = withoutRefusal(written.Status.Conditions)
	return RestoreDeployment(stored, &written)
}

// computed returns the status of a changed view, nil if its numbers are those that the view showed.
func (c *Clientset) computed(d, after *v1alpha1.MachineDeployment) *v1alpha1.MachineDeploymentStatus {
	shown, is := c.showDeployment(d).Status, &after.Status
	if shown.Replicas == is.Replicas && shown.UpdatedReplicas == is.UpdatedReplicas && shown.AvailableReplicas == is.AvailableReplicas {
		return nil
	}
	return is
}

// withoutRefusal returns the conditions without one that reports as a failure that a creation was
// refused (V13). The status of the MachineSet keeps it: machine-controller-manager would write it
// again with each attempt, whereas it computes that of the MachineDeployment every ten minutes.
func withoutRefusal(conditions []v1alpha1.MachineDeploymentCondition) []v1alpha1.MachineDeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == v1alpha1.MachineDeploymentReplicaFailure && strings.HasPrefix(c.Message, refusal)
	})
}

// statusWith returns the status of a view, including what the stored status omits. Otherwise,
// machine-controller-manager would find its own write missing at each sync, and take the difference
// for progress of a rollout.
func (l *omitted) statusWith(shown *v1alpha1.MachineDeployment) v1alpha1.MachineDeploymentStatus {
	status := l.addCounts(shown.Status, 1)
	status.FailedMachines = slices.Clone(status.FailedMachines)
	for _, spare := range l.spares {
		if spare.failed() {
			status.FailedMachines = append(status.FailedMachines, &spare.MachineSummary)
		}
	}
	if !hasAvailability(shown, 0) {
		status.Conditions = withAvailable(status.Conditions, v1alpha1.ConditionFalse)
	}
	return status
}

// statusWithout returns a status that machine-controller-manager has computed, without what is to
// be omitted.
func (l *omitted) statusWithout(after *v1alpha1.MachineDeployment, stored v1alpha1.MachineDeploymentStatus) v1alpha1.MachineDeploymentStatus {
	status := l.addCounts(after.Status, -1)
	status.FailedMachines = slices.DeleteFunc(slices.Clone(status.FailedMachines), func(m *v1alpha1.MachineSummary) bool {
		return slices.ContainsFunc(l.spares, func(s Spare) bool { return s.Name == m.Name })
	})
	if hasAvailability(after, l.missing) {
		status.Conditions = keepTimes(withAvailable(status.Conditions, v1alpha1.ConditionTrue), stored.Conditions)
	}
	return status
}

// addCounts adds the omitted machines to the numbers of a status, or subtracts them. None of them
// is ready or available.
func (l *omitted) addCounts(status v1alpha1.MachineDeploymentStatus, sign int32) v1alpha1.MachineDeploymentStatus {
	status.UnavailableReplicas = max(0, status.UnavailableReplicas+sign*l.missing)
	all, updated := -l.late.All, -l.late.Updated
	for _, spare := range l.spares {
		if spare.Leaving {
			continue
		}
		all++
		if spare.Updated {
			updated++
		}
	}
	status.Replicas = max(0, status.Replicas+sign*max(0, all))
	status.UpdatedReplicas = max(0, status.UpdatedReplicas+sign*max(0, updated))
	return status
}

// hasAvailability reports whether a MachineDeployment without so many spares has the availability
// that machine-controller-manager requires.
func hasAvailability(shown *v1alpha1.MachineDeployment, spares int32) bool {
	strategy := shown.Spec.Strategy
	if stock.IsRollingUpdate(shown) && strategy.RollingUpdate == nil || stock.IsInPlaceUpdate(shown) && strategy.InPlaceUpdate == nil {
		return true // invalid, and machine-controller-manager does not look at it
	}
	needed := shown.Spec.Replicas - spares - stock.MaxUnavailable(*shown) - shown.Status.PreservedFailedReplicas
	return shown.Status.AvailableReplicas >= needed
}

// withAvailable returns the conditions with this status of Available.
func withAvailable(conditions []v1alpha1.MachineDeploymentCondition, is v1alpha1.ConditionStatus) []v1alpha1.MachineDeploymentCondition {
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

// keepTimes returns the conditions. Available keeps its times if its status is the same as before.
func keepTimes(conditions, before []v1alpha1.MachineDeploymentCondition) []v1alpha1.MachineDeploymentCondition {
	for i, c := range conditions {
		for _, was := range before {
			if c.Type == v1alpha1.MachineDeploymentAvailable && was.Type == c.Type && was.Status == c.Status {
				conditions[i] = was
			}
		}
	}
	return conditions
}
