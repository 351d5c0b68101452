// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"math"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// ReserveMark returns what holds a Machine in reserve that machine-controller-manager is about to
// create, nil if the Machine serves. It sends no request.
func (c *Controller) ReserveMark(b view.Creation) *v1alpha1.Reserve {
	key, now := b.Deployment.String(), c.clock.Now()
	d := c.latest.Deployment(key)
	if d == nil {
		return nil
	}
	memory := c.states.memory(d, now)
	if memory.AppliedTo(d).Excess == 0 {
		return nil
	}
	workload := memory.Workload(d)
	s := pool.Outline(d, &c.latest.Source, now)
	v, claims := reserve.View{Replicas: workload, Dedicated: pool.Dedications(d, workload)}, pool.ClaimsOf(d)
	for _, m := range s.Machines {
		one := reserve.MachineOf(m)
		one.Claimed = claims.Has(one.Name, workload)
		v.Machines = append(v.Machines, one)
	}
	if reserve.ServesOnCreation(v, inFlight(b, s.Machines)) {
		return nil
	}
	mark := c.settings.NewMark(now)
	return &mark
}

// inFlight counts the creations in progress whose machines the store does not show.
func inFlight(b view.Creation, shown []pool.Machine) (n int) {
	known := map[string]bool{}
	for _, m := range shown {
		known[m.Object.Name] = true
	}
	for _, other := range b.InProgress {
		if !known[other.Name] { // nor one that the server has yet to name
			n++
		}
	}
	return n
}

// Superfluous returns a conflict if a MachineDeployment that has a reserve, or requests one, needs
// no more machines, or has no room for one below the max of its bounds, except during rollouts. The
// store of a process that has just started may be minutes older than what
// machine-controller-manager acts on, so both count.
//
// Machine-controller-manager deletes machines that are named for deletion before it lowers the
// replicas of their MachineSet, and it goes on to create what it decided for an excess that has
// been reduced since. It may then freeze the MachineDeployment because it has too many machines.
func (c *Controller) Superfluous(b view.Creation) error {
	key, now := b.Deployment.String(), c.clock.Now()
	d := c.latest.Deployment(key)
	if d == nil {
		return nil
	}
	var memory keep.Memory
	var reduced bool
	c.states.locked(key, func(s *state) {
		memory = s.lastMemory()
		_, reduced = s.visible(0, now)
	})
	workload, visible := memory.Workload(d), memory.Visible(d)
	limit, requested := limitOf(d)
	excess := memory.AppliedTo(d).Excess > 0 || reduced || requested
	if !excess && limit == pool.Unbounded {
		return nil
	}
	s := pool.Outline(d, &c.latest.Source, now)
	late := c.latest.lateDeletions(d)
	kept := countKept(d, workload, s.Machines, late)
	n := countForCreation(s.Machines, late)
	n.staying, n.kept = n.staying+inFlight(b, s.Machines), kept
	if seen := c.latest.seenLater(key, d); seen != nil {
		visible = int(seen.Spec.Replicas)
	}
	ours := excess || n.reserve > 0
	enough, full := ours && n.staying >= visible, ours && n.isFull(workload, limit)
	if !enough && !full || pool.Spread(s.Sets, n.bySet) && c.latest.seenSpread(d) {
		return nil
	}
	return conflictError("machines", b.Machine.GenerateName, "%d machines stay and %d leave, and there are to be %d", n.staying, n.leaving, visible)
}

// creationCount counts the machines that matter for whether one more may be created.
type creationCount struct {
	staying, leaving int
	// reserve counts the machines of the reserve, leavingReserve those of them that leave.
	reserve, leavingReserve int
	// kept counts those that are dedicated and not claimed, so that they do not serve workload.
	kept int
	// bySet counts the staying machines of each MachineSet.
	bySet map[string]int
}

// countForCreation counts the machines that the controller's store shows, and the late deletions, which
// it removes from the map. A victim among the latter counts as one of the reserve, because its mark may
// not be shown yet.
func countForCreation(machines []pool.Machine, late map[types.UID]*mcm.Machine) creationCount {
	n := creationCount{bySet: map[string]int{}}
	for _, m := range machines {
		marked, seen := pool.Marked(m.Object), late[m.Object.UID]
		switch {
		case pool.BeingDeleted(m.Object):
			n.addLeaving(marked)
		case seen != nil:
			n.addLeaving(marked || pool.Priority(seen) == reserve.PriorityVictim)
		default:
			n.addStaying(m.Set, marked)
		}
		delete(late, m.Object.UID)
	}
	for _, seen := range late {
		n.addLeaving(pool.Priority(seen) == reserve.PriorityVictim)
	}
	return n
}

// countKept counts the staying machines in reserve that are not released while workload has this many
// machines (law 19 of package reserve).
func countKept(d *v1alpha1.MachineDeployment, workload int, machines []pool.Machine, late map[types.UID]*mcm.Machine) int {
	claims, kept := pool.ClaimsOf(d), 0
	for _, m := range machines {
		if m.Marked() && !pool.BeingDeleted(m.Object) && late[m.Object.UID] == nil && !claims.Has(m.Object.Name, workload) {
			kept++
		}
	}
	return min(kept, pool.Dedicated(pool.Dedications(d, workload)))
}

func (n *creationCount) addStaying(set string, inReserve bool) {
	n.staying++
	n.bySet[set]++
	if inReserve {
		n.reserve++
	}
}

func (n *creationCount) addLeaving(ofReserve bool) {
	n.leaving++
	if ofReserve {
		n.leavingReserve++
		n.reserve++
	}
}

// isFull reports whether the machines leave no room below max (I1): machine-controller-manager may
// be shown more until the excess falls to a lower max, and some machines may be leaving. Workload
// waits only for machines of the reserve to leave: others may be sick, or take hours to drain.
func (n creationCount) isFull(workload, limit int) bool {
	leaving := n.leaving
	if n.staying-n.kept < workload {
		leaving = n.leavingReserve
	}
	return workload <= limit && n.staying+leaving >= limit
}

// limitOf returns the max of the bounds of a MachineDeployment, and whether it requests a reserve.
func limitOf(d *v1alpha1.MachineDeployment) (limit int, requested bool) {
	wishes, _ := pool.WishesOf(d) // bounds limit whatever other annotations say
	if wishes.Bounds == nil {
		return pool.Unbounded, wishes.Any()
	}
	return int(wishes.Bounds.Max), wishes.Any()
}

// Seen reports whether the store that ReserveMark counts in shows all Machines up to a version.
func (c *Controller) Seen(version string) bool { return c.latest.showsMachines(version) }

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
