// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"
	"time"
)

// Plan is what to do about a View. It may be carried out in part: the next plan continues from there.
type Plan struct {
	// Replicas is the new R, and Applied is what to record, both in one write on the version that the
	// view shows. They equal the view's if nothing changes.
	Replicas int
	Applied  Applied
	// Moves are the releases, in the order to write them, and then the retirements.
	Moves []Move
	// Total is how many machines there are to be.
	Total int
	// Room is how many machines may be created now. The first Serve of them serve, the others are in
	// reserve.
	Room, Serve int
	// Going are the machines to delete now. Closed are all reserve machines that may be deleted now, also
	// where a rollout needs that, the first to go first. Cut is how many machines that are not in reserve
	// are too many.
	Going  []Deletion
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

// Deletion is a machine that is to be deleted.
type Deletion struct {
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

// AtRest reports whether the plan moves no machine and changes no number.
func (p Plan) AtRest(v View) bool {
	return len(p.Moves)+len(p.Owners) == 0 && p.Applied == v.Applied && p.Replicas == v.Replicas
}

// Decide makes a plan. See the laws in the package comment.
func Decide(v View) Plan {
	r := newRound(v)
	r.settleReduction()
	r.restoreReplicas()
	r.releaseMachines()
	r.setTarget()
	r.retireMachines()
	r.shrink()
	r.cut()
	r.drain()
	r.setTotal()
	r.record()
	r.setOwners()
	r.summarize()
	return r.plan
}

// round is a plan in progress.
type round struct {
	view View
	// These begin as in the view, and change as the plan is made.
	replicas, max int
	applied       Applied
	// machines are those of the view, the oldest first, with the marks that they have after the plan.
	machines []Machine
	// asked is how many machines there were to be, if R was what it is now.
	asked int
	// excess is X: what max leaves of the wish. target is how many machines there are to be in reserve,
	// and stuck how many of those there cannot be created.
	excess, target, stuck int
	// restored is by how much R rises for reserve machines that were named.
	restored int
	// reduced reports whether a client's reduction of replicas, and not max, limits the reserve.
	reduced bool
	plan    Plan
}

func newRound(v View) *round {
	r := &round{view: v, replicas: v.Replicas, max: v.Max, applied: v.Applied, machines: slices.Clone(v.Machines), asked: v.Replicas + v.Applied.Excess}
	if v.Applied.Excess <= 0 { // nothing is recorded
		r.asked = max(r.asked, v.SetReplicas)
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
	r.plan.Retry = v.Retry
	return r
}

// counts are numbers of machines that are not leaving, except for the last.
type counts struct {
	// serving is S, and running is how many of them are ready. Unhealthy machines without a mark
	// count in neither.
	serving, running, sick int
	// reserve is V, of which ready could serve at once.
	reserve, ready int
	// live is the sum of these.
	live, leaving int
}

func (r *round) countMachines() counts {
	var t counts
	for _, m := range r.machines {
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

// count returns how many matching machines are not leaving.
func (r *round) count(want func(Machine) bool) int {
	return len(r.selectMachines(want, func(Machine, Machine) int { return 0 }))
}

func newestFirst(a, b Machine) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Name, a.Name))
}

func compareFalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// clamp returns n, but at least 0 and at most most.
func clamp(n, most int) int { return max(0, min(n, most)) }
