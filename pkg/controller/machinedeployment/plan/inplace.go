// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/requeue"
)

// updateMachinesInPlace gives machines of old MachineSets to the newest one once their Nodes have been
// updated. Wherever that is interrupted, no machine is created or deleted in the place of one that moves:
// first the machine moves, with a label that says that no size includes it yet; then the sizes follow
// from the machines, and the label is removed. Meanwhile no old MachineSet creates machines, and no
// machine with the label is surplus.
func (p *Plan) updateMachinesInPlace(d *deployment) {
	if d.newest == nil {
		p.createNewest(d)
		return
	}
	d.markOld()
	d.enableNewest()
	d.countMoved()
	d.finishUpdates()
	for _, s := range d.old {
		d.shrinkTo(s, int32(s.present()))
	}
	switch size, old := d.newest.Object.Spec.Replicas, sizes(d.old); {
	case size > d.replicas():
		d.resize(d.newest, d.replicas())
	case size == d.replicas():
		d.endOld()
	case size+old < d.replicas():
		d.resize(d.newest, d.replicas()-old)
	case d.move():
		p.Again = requeue.Sooner(p.Again, soon)
	case d.stored.Spec.Strategy.InPlaceUpdate.OrchestrationType == mcm.OrchestrationTypeAuto:
		d.selectForUpdate()
	}
	if d.isComplete(d.stored.Status.StockMachineDeploymentStatus) {
		d.unprotect()
		p.cleanUp(d)
	}
}

// enableNewest lets the newest MachineSet create machines, if it was an old one before.
func (d *deployment) enableNewest() {
	s := d.newest.Object
	if s.Labels[machineutils.LabelKeyMachineSetScaleUpDisabled] == scaleUpDisabled {
		s.Labels = without(s.Labels, machineutils.LabelKeyMachineSetScaleUpDisabled)
	}
}

// scaleUpDisabled is the value of the label of a MachineSet whose machines are updated in place. People
// who set the label themselves may choose another one.
const scaleUpDisabled = "true"

func disableScaleUp(s *set) {
	if _, disabled := s.Object.Labels[machineutils.LabelKeyMachineSetScaleUpDisabled]; !disabled {
		s.Object.Labels = with(s.Object.Labels, machineutils.LabelKeyMachineSetScaleUpDisabled, scaleUpDisabled)
	}
}

// countMoved includes the machines that have moved in the sizes of their MachineSets. Usually that is the
// newest one, unless there was a newer one at the same time. If that is the newest one now, it may be what
// they have left.
func (d *deployment) countMoved() {
	left := d.newest.missing()
	for _, s := range d.sets() {
		var moved int32
		for i, m := range s.machines {
			if m.Labels[mcm.LabelKeyNodeUpdateResult] == mcm.LabelValueNodeUpdateSuccessful {
				moved++
				after := m.DeepCopy()
				delete(after.Labels, mcm.LabelKeyNodeUpdateResult)
				s.machines[i] = after
			}
		}
		uncounted := min(moved, int32(-s.missing()))
		if uncounted <= 0 {
			continue
		}
		d.resize(s, s.Object.Spec.Replicas+uncounted)
		if gone := min(uncounted, int32(left)); gone > 0 {
			d.resize(d.newest, d.newest.Object.Spec.Replicas-gone)
			left -= int(gone)
		}
	}
}

// endOld takes the machines that are left from old MachineSets, the oldest first, as soon as enough of the
// newest one are available: one that has just been updated is not yet.
func (d *deployment) endOld() {
	needed := max(0, d.replicas()-d.maxUnavailable()-d.newest.serving())
	for _, s := range slices.Backward(d.old) {
		stays := min(needed, s.Object.Spec.Replicas)
		d.shrinkTo(s, stays)
		needed -= stays
	}
}

// shrinkTo lowers a size.
func (d *deployment) shrinkTo(s *set, size int32) {
	if size < s.Object.Spec.Replicas {
		d.resize(s, size)
	}
}

// isUpdatingInPlace reports whether there are machines that are to be updated in place.
func (d *deployment) isUpdatingInPlace() bool {
	return d.stored.Spec.Strategy.Type == mcm.InPlaceUpdateMachineDeploymentStrategyType && d.newest != nil && sizes(d.old) > 0
}

// scaleInPlace acts on a new number of replicas in an update. The newest MachineSet grows, and the oldest
// ones shrink, since their machines would have to be updated; machines that the reserve gives up go first,
// whatever MachineSet they are of. What is beyond replicas is the surge of the newest one.
func (d *deployment) scaleInPlace() {
	outdated := false
	for _, s := range d.deciding() {
		if d.isOutdated(s) {
			outdated = true
			d.resize(s, s.Object.Spec.Replicas)
		}
	}
	if !outdated {
		return
	}
	surplus := sizes(d.sets()) - d.replicas() - min(d.newest.Object.Spec.Replicas, d.surgeInPlace())
	for _, s := range d.sets() {
		spare := min(max(surplus, 0), s.Object.Spec.Replicas, d.spareIn(s))
		d.shrinkTo(s, s.Object.Spec.Replicas-spare)
		surplus -= spare
	}
	for _, s := range d.old {
		fewer := min(max(surplus, 0), s.Object.Spec.Replicas)
		d.shrinkTo(s, s.Object.Spec.Replicas-fewer)
		surplus -= fewer
	}
	if missing := d.replicas() - sizes(d.sets()); missing > 0 {
		d.resize(d.newest, d.newest.Object.Spec.Replicas+missing)
	}
}

// surgeInPlace is how many machines beyond replicas there may be while machines are updated in place.
func (d *deployment) surgeInPlace() int32 {
	strategy := d.stored.Spec.Strategy.InPlaceUpdate
	if strategy.OrchestrationType == mcm.OrchestrationTypeManual {
		return 0
	}
	return d.resolve(strategy.MaxSurge, true)
}

// move moves the machines whose Nodes have been updated to the newest MachineSet, unless that is being
// deleted, and reports whether there are any. The sizes follow once that is written.
func (d *deployment) move() (moves bool) {
	if d.newest.stored.DeletionTimestamp != nil {
		return false
	}
	for _, s := range d.old {
		for i, m := range s.machines {
			if d.hasUpdated(m) {
				disableScaleUp(s)
				s.machines[i] = d.moved(m, s)
				moves = true
			}
		}
	}
	return moves
}

// hasUpdated reports whether a machine can move: its update is over, and it stays.
func (d *deployment) hasUpdated(m *mcm.Machine) bool {
	return m.DeletionTimestamp == nil && machineutils.IsMachineActive(m) && !isUpdating(m) &&
		reasonOfUpdate(m.Status.Conditions) == mcm.UpdateSuccessful && hasSucceeded(d.nodeOf(m))
}

// isUpdating reports whether the machine controller has yet to see the result of an update. It would not
// see that any more without the marks of the Node, and replace the machine after a timeout.
func isUpdating(m *mcm.Machine) bool {
	phase := m.Status.CurrentStatus.Phase
	return phase == mcm.MachineInPlaceUpdating || phase == mcm.MachineInPlaceUpdateFailed
}

// moved returns a machine of an old MachineSet as one of the newest.
func (d *deployment) moved(m *mcm.Machine, from *set) *mcm.Machine {
	m = m.DeepCopy()
	m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == from.stored.UID })
	m.OwnerReferences = append(m.OwnerReferences, *metav1.NewControllerRef(d.newest.stored, mcm.SchemeGroupVersion.WithKind("MachineSet")))
	for key := range from.Object.Spec.Selector.MatchLabels {
		delete(m.Labels, key)
	}
	maps.Copy(m.Labels, d.newest.Object.Spec.Selector.MatchLabels)
	m.Labels[mcm.LabelKeyNodeUpdateResult] = mcm.LabelValueNodeUpdateSuccessful
	return m
}
