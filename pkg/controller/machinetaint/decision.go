// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"fmt"
	"math"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// decision is about one write. It is made under the lock of states.
type decision struct {
	*latest
	key        string
	deployment *v1alpha1.MachineDeployment // nil if there is none
	memory     plan.Memory
	state      *state
	now        time.Time
}

func (d decision) applied() reserve.Applied { return d.memory.AppliedTo(d.deployment) }
func (d decision) workload() int            { return d.memory.Workload(d.deployment) }
func (d decision) visible() int             { return d.memory.Visible(d.deployment) }

// isBehind reports whether machine-controller-manager has seen a later version of the
// MachineDeployment.
func (d decision) isBehind() bool { return d.seenLater(d.key, d.deployment) != nil }

// resizeConflict returns a conflict if replicas of a MachineSet were decided for another total
// number of machines than is shown now, or would exceed it.
func (d decision) resizeConflict(before, after *mcm.MachineSet) error {
	total, known := stock.GetDesiredReplicasAnnotation(after)
	if !known || d.deployment == nil {
		return nil
	}
	shown, reserved := d.visible(), d.applied().Excess > 0
	wrong := reserved && int(total) < shown
	if before != nil && after.Spec.Replicas > before.Spec.Replicas {
		if most := shown + rolloutSurge(d.deployment, shown); reserved && d.machinesWith(before, after) > most {
			return conflictError("machinesets", after.Name, "machines of its last growth are not counted yet, and there may be %d in total", most)
		}
		var reduced bool
		shown, reduced = d.state.visible(shown, d.now)
		wrong = reduced && int(total) > shown && !d.isBehind()
	}
	if wrong {
		return conflictError("machinesets", after.Name, "decided for %d machines, but there are to be %d", total, shown)
	}
	return nil
}

// machinesWith returns how many machines there would be if a MachineSet grew in a rollout before
// its status counts the machines of its last growth; otherwise 0. machine-controller-manager
// decides on that status, so it would ask for them once more.
func (d decision) machinesWith(before, after *mcm.MachineSet) int {
	if before.Status.Replicas >= before.Spec.Replicas {
		return 0
	}
	others := 0
	for _, set := range d.seenSets(d.deployment) {
		if set.UID != after.UID {
			others += int(max(set.Spec.Replicas, set.Status.Replicas))
		}
	}
	if others == 0 {
		return 0
	}
	return others + int(after.Spec.Replicas)
}

// rolloutSurge returns how many machines a rollout may add to a number of machines. It is no limit
// if it cannot be parsed.
func rolloutSurge(d *v1alpha1.MachineDeployment, machines int) int {
	var most *intstr.IntOrString
	switch strategy := d.Spec.Strategy; {
	case strategy.RollingUpdate != nil:
		most = strategy.RollingUpdate.MaxSurge
	case strategy.InPlaceUpdate != nil:
		most = strategy.InPlaceUpdate.MaxSurge
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(most, intstr.FromInt32(0)), machines, true)
	if err != nil {
		return math.MaxInt32
	}
	return n
}

// setOutdated reports whether a MachineSet asks for what was decided for a smaller total number of
// machines than is shown now. A frozen MachineSet does not count: it is not written any more until
// it has lost machines.
func (d decision) setOutdated(set *mcm.MachineSet) bool {
	total, known := stock.GetDesiredReplicasAnnotation(set)
	return known && set.Spec.Replicas > 0 && !pool.Frozen(set) &&
		d.applied().Excess > 0 && int(total) < d.visible() && !d.isBehind()
}

// removalConflict returns a conflict if a machine must not be deleted, and otherwise whether its
// deletion is limited to its version: that is so if there is, or was, a reserve.
func (d decision) removalConflict(set *mcm.MachineSet, m *mcm.Machine) (ours bool, err error) {
	switch {
	case d.deployment == nil || d.deployment.DeletionTimestamp != nil:
		return false, nil
	case d.isUnsettled(set, m):
		return false, conflictError("machines", m.Name, "it is in reserve, and replicas are still to be restored for it")
	case deletedAnyway(m, pool.Named(d.deployment)):
		return false, nil
	case d.state.releases[m.UID]:
		return false, conflictError("machines", m.Name, "it is leaving the reserve")
	}
	present, reserve := d.countStaying(set, m.UID)
	ours = d.hasReserve() || d.wasMarked(m)
	switch {
	case ours && present <= int(set.Spec.Replicas):
		return ours, conflictError("machines", m.Name, "there are %d machines, and its machine set asks for %d", present, set.Spec.Replicas)
	case ours && d.setOutdated(set):
		return ours, conflictError("machines", m.Name, "its machine set does not ask for %d machines yet", d.visible())
	case !mustLose(set, reserve) && d.isNeeded(set, m, ours):
		return ours, conflictError("machines", m.Name, "it serves, and no more machines serve than workload needs")
	case !ours && reserve > 0 && set.Spec.Replicas > 0:
		// The annotation was lost: a client wrote the whole object without annotations.
		return ours, conflictError("machines", m.Name, "%d machines are still in reserve and go first", reserve)
	}
	return ours, nil
}

// hasReserve reports whether an excess is applied, or was lately.
func (d decision) hasReserve() bool {
	_, reduced := d.state.visible(0, d.now)
	return d.applied().Excess > 0 || reduced
}

// isNeeded reports whether a machine serves, no rollout replaces it, and no more machines serve
// than workload needs, or will need once replicas are restored, without those that are deleted
// anyway, and without those that this controller does not see yet: they may be in reserve. One whose
// release has begun is needed while workload needs any machine: it soon serves, or is in reserve
// again. In a rollout, machine-controller-manager deletes machines of each MachineSet when it is
// shown a smaller total, for example after a client removed the record of the excess. Without a
// reserve, that is left to machine-controller-manager.
func (d decision) isNeeded(set *mcm.MachineSet, m *mcm.Machine, ours bool) bool {
	switch {
	case !followsDeployment(set) && set.Name != pool.CurrentSet(d.deployment, d.Sets(d.deployment.UID)):
		return false
	case d.isMarked(m):
		return d.isOpened(m) && d.workload()+d.unsettledNames() > 0
	}
	serving, reserve, named := 0, 0, pool.Named(d.deployment)
	for _, other := range d.seenMachines(d.deployment) {
		switch {
		case other.UID != m.UID && !d.isKnown(other):
		case d.isMarked(other):
			reserve++ // also a leaving one: MCM is still carrying out the change for which it leaves
		case !deletedAnyway(other, named) && (other.UID == m.UID || !d.state.isRemoved(other.UID, d.now)):
			serving++
		}
	}
	return (ours || reserve > 0) && serving <= d.workload()+d.unsettledNames()
}

// isOpened reports whether the release of a machine has begun, so that pods may run on it that are not
// shown.
func (d decision) isOpened(m *mcm.Machine) bool {
	_, begun := d.state.openings[m.UID]
	return begun
}

// unsettledNames counts the reserve machines that a client named when it lowered replicas, and for
// which these may still be restored (law 12 of package reserve), also those that are gone.
func (d decision) unsettledNames() int {
	if d.reserveTakesNames() {
		return 0
	}
	known := d.state.named.validFor(d.deployment)
	n := len(known)
	for _, name := range d.state.namedReserve(d.deployment, d.now, d.inReserve) {
		if !known[name] {
			n++
		}
	}
	return n
}

// reserveTakesNames reports whether replicas include more reserve machines than a client has lowered
// them by, so that they are not restored for those that it named.
func (d decision) reserveTakesNames() bool { return d.applied().Counted > 0 }

// mustLose reports whether a MachineSet has to lose machines, whatever runs on them: it is frozen, and
// none of its machines in reserve can go instead. In a rollout, those stay.
func mustLose(set *mcm.MachineSet, reserve int) bool {
	return pool.Frozen(set) && (reserve == 0 || !followsDeployment(set))
}

// isUnsettled reports whether a machine in reserve is named for deletion, and replicas may still
// have to be restored because the client that named it has lowered them, too (law 12 of package
// reserve). Once the machine is gone, nothing shows for what they were lowered, and a machine that
// serves would be deleted as well. A machine that the store does not show yet may be in reserve.
func (d decision) isUnsettled(set *mcm.MachineSet, m *mcm.Machine) bool {
	named := pool.Named(d.deployment)
	_, isNamed := named[m.Name]
	unseen := d.hasReserve() && !d.isKnown(m)
	switch {
	case d.reserveTakesNames():
		return false
	case !isNamed && !pool.Condemned(m), !d.isMarked(m) && !unseen, plan.Returned(d.deployment)[m.Name], pool.Frozen(set), set.Spec.Replicas == 0:
		return false
	case unseen, d.isBehind():
		return true
	}
	running := 0
	for _, other := range d.seenMachines(d.deployment) {
		if pool.Ready(other.Status.CurrentStatus.Phase) && (!d.isMarked(other) || d.isOpened(other)) && !deletedAnyway(other, named) {
			running++
		}
	}
	return running > d.workload()
}

// followsDeployment reports whether a MachineSet asks for all machines of its MachineDeployment, so
// that each deletion is one too many.
func followsDeployment(set *mcm.MachineSet) bool {
	total, known := stock.GetDesiredReplicasAnnotation(set)
	return known && total == set.Spec.Replicas
}

// countStaying counts the machines of a MachineSet that are not being deleted, and those in reserve
// among them. It includes the machine whose deletion is requested, also if it is requested again.
func (d decision) countStaying(set *mcm.MachineSet, asked types.UID) (present, reserve int) {
	for _, other := range ownedBy[*mcm.Machine](d.stores.seenMachines, set) {
		if pool.BeingDeleted(other) || other.UID != asked && d.state.isRemoved(other.UID, d.now) {
			continue
		}
		present++
		if d.isMarked(other) {
			reserve++
		}
	}
	return present, reserve
}

// deletedAnyway reports whether a machine is deleted whatever the replicas are: it has failed, or
// was named.
func deletedAnyway(m *mcm.Machine, named map[string]time.Time) bool {
	_, isNamed := named[m.Name]
	return isNamed || m.Status.CurrentStatus.Phase == mcm.MachineFailed || pool.BeingDeleted(m) || pool.Priority(m) == 1
}

func conflictError(resource, name, format string, args ...any) error {
	return apierrors.NewConflict(mcm.Resource(resource), name, fmt.Errorf(format, args...))
}
