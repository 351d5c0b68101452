// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Plan is what to do about a View. It is carried out in the order of its fields, and may be carried out in part: the
// next plan goes on from there.
type Plan struct {
	// Replicas is what R is to become, by compare-and-swap on the version the view was made of, and Returned the named
	// reserve machines that are settled with it, because R is given back for them or the reserve is smaller by them. They are to be
	// remembered in the same write, as is Applied.
	Replicas int
	Returned []string
	// Moves are releases first, in the order to write them, then retirements.
	Moves []Move
	// Priorities are to be written on the version of the machine that the view was made of, sorted by name.
	Priorities []Priority
	// Applied is what the lens is to show from now on; as in the view where nothing changes.
	Applied Applied
	// Victims are the machines that are to go, whether or not they have their priority yet, sorted by name.
	Victims []Victim
	// SurplusSince, Retry and Lowered are to be remembered for the next view.
	SurplusSince time.Time
	Retry        Retry
	Lowered      Lowered
	// Again is when to look again though nothing has happened; 0 is never.
	Again time.Duration
	// Standing says where the reserve stands once the plan is carried out, and why.
	Standing Standing
}

// Move changes one machine's mark.
type Move struct {
	Name string
	// Reserve is the mark it gets.
	Reserve bool
	Why     Why
}

// Priority gives one machine a deletion priority.
type Priority struct {
	Name     string
	Priority int
}

// Victim is a machine that is to go.
type Victim struct {
	Name string
	Why  Why
}

// Why a machine moves or goes.
type Why string

const (
	// Released: it serves because fewer than R machines did.
	Released Why = "Released"
	// Swapped: it serves because it is ready, for one that boots, or the reverse.
	Swapped Why = "Swapped"
	// Retired: it is in reserve because more than R machines served, and it was empty.
	Retired Why = "Retired"
	// Shrunk: it goes because the excess is less than it was.
	Shrunk Why = "Shrunk"
	// Unmakeable: it goes because it cannot be made, or does not become ready.
	Unmakeable Why = "Unmakeable"
	// Surplus: it goes because more than R machines served for too long, and none was empty.
	Surplus Why = "Surplus"
)

// AtRest says that the plan writes nothing.
func (p Plan) AtRest(v View) bool {
	return len(p.Returned)+len(p.Moves)+len(p.Priorities) == 0 && p.Applied == v.Applied && p.Replicas == v.Replicas
}

// NewPlan decides. See the package's laws.
func NewPlan(v View) Plan {
	r := begin(v)
	r.settle()
	r.giveBack()
	r.release()
	r.retire()
	r.aim()
	r.choose()
	r.apply()
	r.count()
	r.rank()
	r.explain()
	return r.plan
}

// round is a plan in the making. The machines' marks are as they will be.
type round struct {
	View
	machines []Machine
	// victim holds, for each machine, why it is to go; see choose.
	victim []bool
	// counting reports whether spec.replicas includes reserve machines when the round begins.
	counting bool
	// reduced reports whether a client's reduction of replicas, and not max, limits the reserve.
	reduced bool
	// shown is what the lens shows when the round begins.
	shown int
	// present is how many machines machine-controller-manager counts.
	present int
	// stuck is how many machines cannot be made; target is where the applied excess is headed, surplus how many
	// machines are to go beyond the reserve's.
	stuck, target, surplus int
	plan                   Plan
}

func begin(v View) *round {
	r := &round{View: v, machines: slices.Clone(v.Machines), shown: pool.VisibleReplicas(v.Replicas, v.Applied)}
	slices.SortFunc(r.machines, func(a, b Machine) int {
		return cmp.Or(a.Born.Compare(b.Born), cmp.Compare(a.Name, b.Name))
	})
	for i := range r.machines {
		if v.Blind {
			r.machines[i].Pods, r.machines[i].Pinned = 0, false // nothing below may depend on them
		}
	}
	r.victim = make([]bool, len(r.machines))
	r.plan = Plan{Replicas: v.Replicas, Applied: v.Applied, Retry: v.Retry}
	r.present = r.tally().present
	return r
}

// tally counts machines that are not leaving, but for the two last numbers.
type tally struct {
	// serving is S, of which running are ready; sick machines that carry no mark are in neither.
	serving, running, sick int
	// reserve is V, of which ready could serve at once.
	reserve, ready int
	// live is all of these; present is what machine-controller-manager counts, which goes on counting a machine that
	// leaves until its phase says so.
	live, present, leaving int
}

func (r *round) tally() tally {
	var t tally
	for _, m := range r.machines {
		if m.Phase != mcm.MachineTerminating {
			t.present++
		}
		if m.Leaving() {
			t.leaving++
			continue
		}
		t.live++
		t.add(m)
	}
	return t
}

func (t *tally) add(m Machine) {
	switch {
	case m.Reserve:
		t.reserve++
		if m.Ready() {
			t.ready++
		}
	case m.Sick():
		t.sick++
	default:
		t.serving++
		if m.Ready() {
			t.running++
		}
	}
}

// pick returns the indices of the machines that are not leaving and fulfil want, in the order given.
func (r *round) pick(want func(Machine) bool, order func(a, b Machine) int) []int {
	var picked []int
	for i, m := range r.machines {
		if !m.Leaving() && want(m) {
			picked = append(picked, i)
		}
	}
	slices.SortStableFunc(picked, func(i, j int) int { return order(r.machines[i], r.machines[j]) })
	return picked
}

// doomed says that machine-controller-manager may be about to delete m, because it has been told to have fewer
// machines than there are and m goes first (law 9).
func (r *round) doomed(m Machine, shown int) bool {
	return min(m.Priority, m.SeenPriority) <= PriorityVictim && min(r.Wanted, shown) < r.present
}
