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
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// guards refuse what machine-controller-manager decided before the applied excess grew: it would
// delete as many machines as the excess had been reduced by, although those that were to be deleted
// are victims no longer. They remember the writes that they allow until the stores show these.
type guards struct {
	latest *latest
	states *states
	clock  clock.PassiveClock
	// syncAfter syncs a MachineDeployment after a time.
	syncAfter func(key string, after time.Duration)
}

// Guards returns what decides whether machine-controller-manager may resize MachineSets, delete
// Machines, and remove their names from MachineDeployments.
func (c *Controller) Guards() view.Guards {
	return view.Guards{Shrink: c.guards.resize, Remove: c.guards.remove, Unname: c.guards.unname}
}

func (g *guards) decide(key string, f func(decision) error) (err error) {
	g.states.locked(key, func(s *state) {
		err = f(decision{latest: g.latest, key: key, deployment: g.latest.Deployment(key), memory: s.lastMemory(), state: s, now: g.clock.Now()})
	})
	return err
}

// resize allows a change of a MachineSet's replicas only if it was decided for the present applied
// excess.
func (g *guards) resize(after *mcm.MachineSet) (ended func(*mcm.MachineSet, error), err error) {
	set := keyOf(after)
	key, owned := keyOfSet(after)
	before := stores.Find[mcm.MachineSet](g.latest.stores.seenSets, set)
	if !owned || before != nil && after.Spec.Replicas == before.Spec.Replicas {
		return func(*mcm.MachineSet, error) {}, nil
	}
	err = g.decide(key, func(d decision) error {
		if err := d.resizeConflict(before, after); err != nil {
			return err
		}
		d.state.beginResize(set, int(after.Spec.Replicas))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(result *mcm.MachineSet, err error) {
		g.states.locked(key, func(s *state) {
			if s.endResize(set, result, err, g.clock.Now()) {
				g.syncAfter(key, unknownFor+time.Second)
			}
		})
	}, nil
}

// remove allows the deletion of a Machine only while its MachineSet has more machines than it asks
// for, unless the machine is to be deleted anyway. The deletion is limited to the version that was
// seen: a request may wait for seconds, and meanwhile the machine may leave the reserve and get
// pods.
func (g *guards) remove(namespace, name string) (version string, ended func(error), err error) {
	nothing := func(error) {}
	m, set, key := g.latest.seenMachine(namespace + "/" + name)
	if set == nil || set.DeletionTimestamp != nil {
		return "", nothing, nil
	}
	guarded := false
	err = g.decide(key, func(d decision) error {
		ours, err := d.removalConflict(set, m)
		if guarded = ours && err == nil; guarded {
			d.state.beginRemoval(m.UID)
		}
		return err
	})
	switch {
	case err != nil:
		return "", nil, err
	case !guarded:
		return "", nothing, nil
	}
	return m.ResourceVersion, func(err error) {
		g.states.locked(key, func(s *state) { s.endRemoval(m.UID, err, g.clock.Now()) })
	}, nil
}

// reduce begins a reduction to this number of machines, unless the MachineSets ask for more than
// when it was decided. From then on, none of them grows because of an earlier decision. The
// function that it returns is called with the outcome.
func (g *guards) reduce(d *v1alpha1.MachineDeployment, shown, asked int) (ended func(error), err error) {
	key := keyOf(d)
	g.states.locked(key, func(s *state) {
		if _, most := s.totalReplicas(g.latest.seenSets(d), g.clock.Now()); most > asked {
			err = conflictError("machinedeployments", d.Name, "its machine sets ask for %d machines by now", most)
			return
		}
		s.beginReduction(shown)
	})
	if err != nil {
		return nil, err
	}
	return func(err error) {
		g.states.locked(key, func(s *state) {
			if s.endReduction(err, g.clock.Now()) {
				g.syncAfter(key, unknownFor+time.Second)
			}
		})
	}, nil
}

// unname refuses to remove a name from a MachineDeployment before this controller's store shows a
// version with that name: if the watch breaks, the next list would not show that replicas have to be
// restored for it. Before is what the API server has, which machine-controller-manager reads there: no
// store may show it yet.
func (g *guards) unname(before, after *mcm.MachineDeployment) error {
	shown, known := g.latest.stores.deployment(keyOf(after))
	if !known || written.Reached(shown.ResourceVersion, before.ResourceVersion) {
		return nil
	}
	left := pool.Named(after)
	for name := range pool.Named(before) {
		if _, is := left[name]; !is {
			return conflictError("machinedeployments", after.Name, "the machine-taint controller has yet to see that %s is named for deletion", name)
		}
	}
	return nil
}

// release keeps a Machine of a MachineDeployment from being deleted until the release has been
// written.
func (g *guards) release(key string, machine types.UID) (ended func()) {
	g.states.locked(key, func(s *state) { s.beginRelease(machine) })
	return func() { g.states.locked(key, func(s *state) { delete(s.releases, machine) }) }
}

// mayBeRemoved reports whether a deletion of the Machine may be in progress, including one of an
// earlier process.
func (g *guards) mayBeRemoved(key string, m *mcm.Machine) (may bool) {
	g.states.locked(key, func(s *state) {
		may = pool.Priority(m) <= reserve.PriorityVictim || s.isRemoved(m.UID, g.clock.Now())
	})
	return may
}

// InReserve reports whether a Machine that machine-controller-manager sees is in reserve.
func (c *Controller) InReserve(shown *mcm.Machine) bool { return c.latest.isMarked(shown) }

// ineffective reports whether a write is known to have changed nothing. A conflict counts, since
// guards are called for each attempt.
func ineffective(err error) bool {
	result := written.Outcome(err)
	return result == written.Refused || result == written.Conflict
}

// decision is about one write. It is made under the lock of states.
type decision struct {
	*latest
	key        string
	deployment *v1alpha1.MachineDeployment // nil if there is none
	memory     keep.Memory
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
	case !isNamed && !pool.Condemned(m), !d.isMarked(m) && !unseen, keep.Returned(d.deployment)[m.Name], pool.Frozen(set), set.Spec.Replicas == 0:
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
