// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Plan is what to do about a View, in the order of its fields. It may be carried out in part: the
// next plan continues from there.
type Plan struct {
	// Replicas is the new R. It is written by compare-and-swap on the version that the view shows.
	// Returned are the named reserve machines that are settled with it, because R is restored for
	// them or the reserve is reduced by them. They and Applied are stored in the same write.
	Replicas int
	Returned []string
	// Moves are the releases, in the order to write them, and then the retirements.
	Moves []Move
	// Priorities are written on the version of the machine that the view shows. They are sorted by
	// name.
	Priorities []Priority
	// Applied is what the lens shows from now on. It equals the view's if nothing changes.
	Applied Applied
	// Victims are the machines to delete, whether or not they have their priority yet, sorted by
	// name.
	Victims []Victim
	// Total is how many machines there are to be. Only [Decide] fills this and the next fields.
	Total int
	// Room is how many machines may be created now. The first Serve of them serve, the others are in
	// reserve.
	Room, Serve int
	// Going are the machines to delete now. Closed are all reserve machines that may be deleted now, also
	// where a rollout needs that, the first to go first. Cut is how many machines that are not in reserve are too many.
	Going  []Victim
	Closed []string
	Cut    int
	// Owners are changes of whom machines are dedicated to, sorted by name.
	Owners []Ownership
	// SurplusSince, Retry and Lowered are kept for the next view.
	SurplusSince time.Time
	Retry        Retry
	Lowered      Lowered
	// Again is the time after which to make the next plan without an event; 0 means never.
	Again time.Duration
	// Summary describes the reserve after the plan.
	Summary Summary
}

// Move changes the mark of one machine.
type Move struct {
	Name string
	// Reserve reports whether the machine gets a mark or loses it.
	Reserve bool
	Why     Why
}

// Priority sets the deletion priority of one machine.
type Priority struct {
	Name     string
	Priority int
}

// Victim is a machine that is to be deleted.
type Victim struct {
	Name string
	Why  Why
}

// Why is the reason for a move or a deletion.
type Why string

const (
	// Released: it serves because fewer than R machines did.
	Released Why = "Released"
	// Swapped: it is ready and serves in place of a booting machine, or the reverse.
	Swapped Why = "Swapped"
	// Retired: it entered the reserve because more than R machines served, and it was empty.
	Retired Why = "Retired"
	// Shrunk: it is deleted because the excess was reduced.
	Shrunk Why = "Shrunk"
	// Unmakeable: it is deleted because it cannot be created, or does not become ready.
	Unmakeable Why = "Unmakeable"
	// Surplus: it is deleted because more than R machines served for too long, and none was empty.
	Surplus Why = "Surplus"
)

// AtRest reports whether the plan writes nothing.
func (p Plan) AtRest(v View) bool {
	return len(p.Returned)+len(p.Moves)+len(p.Priorities)+len(p.Owners) == 0 && p.Applied == v.Applied && p.Replicas == v.Replicas
}

// NewPlan makes a plan. See the laws in the package comment.
func NewPlan(v View) Plan {
	r := newRound(v)
	r.settleReduction()
	r.restoreReplicas()
	r.releaseMachines()
	r.retireMachines()
	r.setTarget()
	r.chooseVictims()
	r.setApplied()
	r.countRegistered()
	r.setPriorities()
	r.setOwners()
	r.summarize()
	return r.plan
}

// round is a plan in progress.
type round struct {
	view View
	// These begin as in the view, and change as the plan is made.
	replicas, excess, max int
	applied               Applied
	// machines are those of the view, the oldest first, with the marks that they have after the plan.
	machines []Machine
	// victim reports for each machine whether it is to be deleted; see chooseVictims.
	victim []bool
	// counting reports whether spec.replicas includes reserve machines when the round begins.
	counting bool
	// reduced reports whether a client's reduction of replicas, and not max, limits the reserve.
	reduced bool
	// surplusServes reports whether more than R machines serve, and no rollout is the reason.
	surplusServes bool
	// visible is the number of replicas that the lens shows when the round begins.
	visible int
	// present is how many machines machine-controller-manager counts.
	present int
	// stuck is the number of machines that cannot be created, target the applied excess to work
	// towards, and surplus the number of serving machines to delete.
	stuck, target, surplus int
	// direct reports whether the caller creates and deletes the machines itself; see [Decide].
	direct bool
	// asked is how many machines there were to be, if R was what it is now.
	asked int
	plan  Plan
}

func newRound(v View) *round {
	r := &round{
		view: v, replicas: v.Replicas, excess: v.Excess, max: v.Max, applied: v.Applied, machines: slices.Clone(v.Machines),
		visible: pool.VisibleReplicas(v.Replicas, v.Applied),
	}
	slices.SortFunc(r.machines, func(a, b Machine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	for i := range r.machines {
		if v.NodesUnknown {
			r.machines[i].Pods, r.machines[i].Pinned = 0, "" // nothing below may depend on them
		}
	}
	r.dedicate()
	r.victim = make([]bool, len(r.machines))
	r.plan.Retry = v.Retry
	r.present = r.countMachines().present
	return r
}

// counts are numbers of machines that are not leaving, except for the last two.
type counts struct {
	// serving is S, and running is how many of them are ready. Unhealthy machines without a mark
	// count in neither.
	serving, running, sick int
	// reserve is V, of which ready could serve at once.
	reserve, ready int
	// live is the sum of these. present is what machine-controller-manager counts: it includes a
	// leaving machine until its phase is Terminating.
	live, present, leaving int
}

func (r *round) countMachines() counts {
	var t counts
	for _, m := range r.machines {
		if m.Phase != mcm.MachineTerminating {
			t.present++
		}
		if m.Leaving() {
			t.leaving++
			continue
		}
		t.live++
		t.addMachine(m)
	}
	return t
}

// removeServing removes a serving machine from the counts.
func (t *counts) removeServing(m Machine) {
	t.serving--
	if m.Ready() {
		t.running--
	}
}

func (t *counts) addMachine(m Machine) {
	switch {
	case m.Reserve:
		t.reserve++
		if m.Ready() {
			t.ready++
		}
	case m.Unhealthy():
		t.sick++
	default:
		t.serving++
		if m.Ready() {
			t.running++
		}
	}
}

// selectMachines returns the indices of matching machines that are not leaving, in the given order.
func (r *round) selectMachines(want func(Machine) bool, order func(a, b Machine) int) []int {
	var picked []int
	for i, m := range r.machines {
		if !m.Leaving() && want(m) {
			picked = append(picked, i)
		}
	}
	slices.SortStableFunc(picked, func(i, j int) int { return order(r.machines[i], r.machines[j]) })
	return picked
}

// mayBeDeleted reports whether machine-controller-manager may be about to delete m, because it was
// told to run fewer machines than there are and m is deleted first (law 9).
func (r *round) mayBeDeleted(m Machine, shown int) bool {
	return !r.direct && min(m.Priority, m.SeenPriority) <= PriorityVictim && min(r.view.SetReplicas, shown) < r.present
}
