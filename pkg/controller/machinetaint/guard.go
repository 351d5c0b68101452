// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"fmt"
	"math"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// Guards refuse what machine-controller-manager decided before the applied excess grew: it would
// delete as many machines as the excess had been reduced by, although those that were to be deleted
// are victims no longer.
func (c *Controller) Guards() view.Guards {
	return view.Guards{Shrink: c.guardResize, Remove: c.guardRemove}
}

// guardResize allows a change of a MachineSet's replicas only if it was decided for the present
// applied excess.
func (c *Controller) guardResize(after *mcm.MachineSet) (func(*mcm.MachineSet, error), error) {
	nothing := func(*mcm.MachineSet, error) {}
	id := setKey(after)
	key, owned := keyOfSet(after)
	before := stores.Find[mcm.MachineSet](c.stores.seenSets, id)
	if !owned || before != nil && after.Spec.Replicas == before.Spec.Replicas {
		return nothing, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.resizeConflict(key, before, after); err != nil {
		return nil, err
	}
	c.beginResize(id, int(after.Spec.Replicas))
	return func(result *mcm.MachineSet, err error) { c.endResize(id, result, err) }, nil
}

// resizeConflict returns a conflict if replicas of a MachineSet were decided for another total
// number of machines than is shown now, or would exceed it. The caller holds the lock.
func (c *Controller) resizeConflict(key string, before, after *mcm.MachineSet) error {
	total, known := stock.GetDesiredReplicasAnnotation(after)
	d := c.newestLocked(key)
	if !known || d == nil {
		return nil
	}
	memory := c.memories[key]
	shown, reserved := memory.visible(d), memory.applied(d).Excess > 0
	wrong := reserved && int(total) < shown
	if before != nil && after.Spec.Replicas > before.Spec.Replicas {
		if most := shown + surge(d, shown); reserved && c.machinesWith(d, before, after) > most {
			return conflictError("machinesets", after.Name, "machines of its last growth are not counted yet, and there may be %d in total", most)
		}
		var reduced bool
		shown, reduced = c.reductionOf(key, shown)
		wrong = reduced && int(total) > shown && !c.behindSeen(key, d)
	}
	if wrong {
		return conflictError("machinesets", after.Name, "decided for %d machines, but there are to be %d", total, shown)
	}
	return nil
}

// machinesWith returns how many machines there would be if a MachineSet grew in a rollout before its
// status counts the machines of its last growth; otherwise 0. machine-controller-manager decides on
// that status, so it would ask for them once more. The caller holds the lock.
func (c *Controller) machinesWith(d *v1alpha1.MachineDeployment, before, after *mcm.MachineSet) int {
	if before.Status.Replicas >= before.Spec.Replicas {
		return 0
	}
	others := 0
	for _, set := range ownedBy[*mcm.MachineSet](c.stores.seenSets, d) {
		if set.UID != after.UID {
			others += int(max(set.Spec.Replicas, set.Status.Replicas))
		}
	}
	if others == 0 {
		return 0
	}
	return others + int(after.Spec.Replicas)
}

// surge returns how many machines a rollout may add to a number of machines. It is no limit if it
// cannot be parsed.
func surge(d *v1alpha1.MachineDeployment, machines int) int {
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
// it has lost machines. The caller holds the lock.
func (c *Controller) setOutdated(key string, d *v1alpha1.MachineDeployment, set *mcm.MachineSet) bool {
	total, known := stock.GetDesiredReplicasAnnotation(set)
	memory := c.memories[key]
	return known && set.Spec.Replicas > 0 && !signs.Frozen(set) &&
		memory.applied(d).Excess > 0 && int(total) < memory.visible(d) && !c.behindSeen(key, d)
}

// guardRemove allows the deletion of a Machine only while its MachineSet has more machines than it
// asks for, unless the machine is to be deleted anyway. The deletion is limited to the version that
// was seen: a request may wait for seconds, and meanwhile the machine may leave the reserve and get
// pods.
func (c *Controller) guardRemove(namespace, name string) (version string, ended func(error), err error) {
	nothing := func(error) {}
	m := stores.Find[mcm.Machine](c.stores.seenMachines, namespace+"/"+name)
	if m == nil {
		return "", nothing, nil
	}
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil {
		return "", nothing, nil
	}
	set := stores.Find[mcm.MachineSet](c.stores.seenSets, namespace+"/"+owner.Name)
	if set == nil || set.DeletionTimestamp != nil {
		return "", nothing, nil
	}
	key, found := keyOfSet(set)
	if !found {
		return "", nothing, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.newestLocked(key)
	switch {
	case d == nil || d.DeletionTimestamp != nil:
		return "", nothing, nil
	case c.isUnsettled(key, d, set, m):
		return "", nil, conflictError("machines", name, "it is in reserve, and replicas are still to be restored for it")
	case deletedAnyway(m, signs.Named(d)):
		return "", nothing, nil
	}
	if c.releases[m.UID] {
		return "", nil, conflictError("machines", name, "it is leaving the reserve")
	}
	present, reserve := c.countStaying(set, m.UID)
	_, reduced := c.reductionOf(key, 0)
	ours := c.memories[key].applied(d).Excess > 0 || reduced || c.wasMarked(m)
	switch {
	case ours && present <= int(set.Spec.Replicas):
		return "", nil, conflictError("machines", name, "there are %d machines, and its machine set asks for %d", present, set.Spec.Replicas)
	case ours && c.setOutdated(key, d, set):
		return "", nil, conflictError("machines", name, "its machine set does not ask for %d machines yet", c.memories[key].visible(d))
	case c.isNeeded(key, d, set, m, ours):
		return "", nil, conflictError("machines", name, "it serves, and no more machines serve than workload needs")
	case ours:
	case reserve == 0 || set.Spec.Replicas == 0:
		return "", nothing, nil
	default:
		// The annotation was lost: a client wrote the whole object without annotations.
		return "", nil, conflictError("machines", name, "%d machines are still in reserve and go first", reserve)
	}
	c.removals[m.UID] = &removal{}
	return m.ResourceVersion, func(err error) { c.endRemoval(m.UID, err) }, nil
}

// isNeeded reports whether a machine serves, no rollout replaces it, and no more machines serve
// than workload needs, without those that are deleted anyway. In a rollout,
// machine-controller-manager deletes machines of each MachineSet when it is shown a smaller total,
// for example after a client removed the record of the excess. Without a reserve, that is left to
// machine-controller-manager, and a frozen MachineSet must lose machines, whatever runs on them.
// The caller holds the lock.
func (c *Controller) isNeeded(key string, d *v1alpha1.MachineDeployment, set *mcm.MachineSet, m *mcm.Machine, ours bool) bool {
	if c.isMarked(m) || signs.Frozen(set) || !followsDeployment(set) && set.Name != pool.CurrentSet(d, c.source.Sets(d.UID)) {
		return false
	}
	serving, reserve, named := 0, 0, signs.Named(d)
	for _, one := range ownedBy[*mcm.MachineSet](c.stores.seenSets, d) {
		for _, other := range ownedBy[*mcm.Machine](c.stores.seenMachines, one) {
			switch {
			case c.isMarked(other):
				reserve++ // also a leaving one: MCM is still carrying out the change for which it leaves
			case !deletedAnyway(other, named) && (other.UID == m.UID || !c.isRemoved(other.UID)):
				serving++
			}
		}
	}
	return (ours || reserve > 0) && serving <= c.memories[key].workload(d)
}

// isUnsettled reports whether a machine in reserve is named for deletion, and replicas may still have
// to be restored because the client that named it has lowered them, too (law 12 of package reserve).
// Once the machine is gone, nothing shows for what they were lowered, and a machine that serves would
// be deleted as well. The caller holds the lock.
func (c *Controller) isUnsettled(key string, d *v1alpha1.MachineDeployment, set *mcm.MachineSet, m *mcm.Machine) bool {
	named := signs.Named(d)
	_, isNamed := named[m.Name]
	switch {
	case !isNamed && !signs.Condemned(m), !c.isMarked(m), returned(d)[m.Name], signs.Frozen(set), set.Spec.Replicas == 0:
		return false
	case c.behindSeen(key, d):
		return true
	}
	running := 0
	for _, one := range ownedBy[*mcm.MachineSet](c.stores.seenSets, d) {
		for _, other := range ownedBy[*mcm.Machine](c.stores.seenMachines, one) {
			if other.Status.CurrentStatus.Phase == mcm.MachineRunning && !c.isMarked(other) && !deletedAnyway(other, named) {
				running++
			}
		}
	}
	return running > c.memories[key].workload(d)
}

// followsDeployment reports whether a MachineSet asks for all machines of its MachineDeployment, so
// that each deletion is one too many.
func followsDeployment(set *mcm.MachineSet) bool {
	total, known := stock.GetDesiredReplicasAnnotation(set)
	return known && total == set.Spec.Replicas
}

// countStaying counts the machines of a MachineSet that are not being deleted, and those in reserve
// among them. It includes the machine whose deletion is requested, also if it is requested again.
// The caller holds the lock.
func (c *Controller) countStaying(set *mcm.MachineSet, asked types.UID) (present, reserve int) {
	for _, other := range ownedBy[*mcm.Machine](c.stores.seenMachines, set) {
		if pool.BeingDeleted(other) || other.UID != asked && c.isRemoved(other.UID) {
			continue
		}
		present++
		if c.isMarked(other) {
			reserve++
		}
	}
	return present, reserve
}

// isMarked reads the stored Machine: the one that machine-controller-manager sees does not have its
// mark.
func (c *Controller) isMarked(shown *mcm.Machine) bool {
	m := stores.Find[mcm.Machine](c.stores.machines, shown.Namespace+"/"+shown.Name)
	return m != nil && pool.Marked(m)
}

// wasMarked reports whether a Machine is in reserve, or was.
func (c *Controller) wasMarked(shown *mcm.Machine) bool {
	m := stores.Find[mcm.Machine](c.stores.machines, shown.Namespace+"/"+shown.Name)
	return m != nil && (pool.Marked(m) || m.Annotations[v1alpha1.ReserveStateAnnotation] != "")
}

// InReserve reports whether a Machine that machine-controller-manager sees is in reserve.
func (c *Controller) InReserve(shown *mcm.Machine) bool { return c.isMarked(shown) }

// deletedAnyway reports whether a machine is deleted whatever the replicas are: it has failed, or
// was named.
func deletedAnyway(m *mcm.Machine, named map[string]time.Time) bool {
	_, isNamed := named[m.Name]
	return isNamed || m.Status.CurrentStatus.Phase == mcm.MachineFailed || pool.BeingDeleted(m) || signs.Priority(m) == 1
}

func conflictError(resource, name, format string, args ...any) error {
	return apierrors.NewConflict(mcm.Resource(resource), name, fmt.Errorf(format, args...))
}

func setKey(set *mcm.MachineSet) string { return set.Namespace + "/" + set.Name }
