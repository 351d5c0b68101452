// SPDX-License-Identifier: Apache-2.0

// Package plan decides how the machines that Reserves request are spread over the
// MachineDeployments of a namespace. [NewView] reads the objects into a [View], [New] turns it into
// a [Plan], and [NewStatus] returns the status of a Reserve. It is pure, and its laws are those of
// package reserves.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/distribute"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

const (
	// lookAgain is the longest wait for a schedule, so that a change of the clock is noticed.
	lookAgain = 10 * time.Minute
	// capacityAgain is when to look again for the capacity of machines.
	capacityAgain = 30 * time.Second
)

// New makes the plan for a namespace.
func New(v View) Plan {
	var p Plan
	for _, r := range v.Reserves {
		if r.DeletionTimestamp != nil {
			continue
		}
		d, again := v.decide(r)
		p.Decisions = append(p.Decisions, d)
		p.Again = requeue.Sooner(p.Again, again)
	}
	slices.SortFunc(p.Decisions, func(a, b Decision) int { return cmp.Compare(a.Reserve.Name, b.Reserve.Name) })
	p.Requests = v.requests(p.Decisions)
	return p
}

// decide decides about one Reserve. It returns when to look again; 0 means never.
func (v View) decide(r *v1alpha1.Reserve) (Decision, time.Duration) {
	d := Decision{Reserve: r}
	selects, err := pool.Selection(r.Spec.Pools)
	if err != nil {
		selects = namedInStatus(r.Status)
	}
	sites := v.selectedSites(selects, r.Status)
	if r.Spec.Suspend {
		d.spread(sites, 0)
		d.Reason, d.Message = reason.Suspended, "spec.suspend is true, so no machines are requested"
		return d, 0
	}
	if err != nil {
		return d.keepRequest(sites, reason.Invalid, err), 0
	}
	terms, err := readTerms(r.Spec)
	if err != nil {
		return d.keepRequest(sites, reason.Invalid, err), 0
	}
	replicas, least := workload(sites)
	for _, t := range terms {
		t.machineCount(replicas, least)
	}
	desired, active, soonest, err := totalMachines(terms, v.Now)
	d.Terms = copyTerms(terms)
	if err != nil && len(sites) > 0 {
		if unknown := unknownDevices(sites, v.DeviceClasses()); len(unknown) > 0 {
			err = fmt.Errorf("%w: %s", err, unknown)
		}
		return d.keepRequest(sites, reason.CapacityUnknown, err), capacityAgain
	}
	d.Desired, d.Active = desired, active
	if len(sites) > 0 {
		d.Next = nextChange(terms, desired, v.Now)
	}
	short := d.spread(sites, desired)
	d.readyReason(sites, short)
	d.checkDedications()
	return d, timeUntil(soonest, v.Now)
}

// keepRequest requests as many machines as before (law 5), where there can be a reserve (law 8).
func (d Decision) keepRequest(sites []site, why string, err error) Decision {
	d.Desired, d.Active = int(d.Reserve.Status.DesiredReplicas), d.Reserve.Status.ActiveSchedules
	d.spread(sites, d.Desired)
	d.Reason, d.Message = why, fmt.Sprintf("%.1000v; until this is fixed, the Reserve requests what it requested before", err)
	return d
}

// namedInStatus selects the MachineDeployments that a status names.
func namedInStatus(s v1alpha1.ReserveStatus) func(*machine.MachineDeployment) bool {
	return func(d *machine.MachineDeployment) bool {
		return slices.ContainsFunc(s.Pools, func(p v1alpha1.ReservePoolStatus) bool { return p.Name == d.Name })
	}
}

// spread spreads machines over MachineDeployments (laws 2 and 4), and returns how many have no
// room, even if all MachineDeployments could create them.
func (d *Decision) spread(sites []site, desired int) (short int) {
	targets, ills, current := make([]distribute.Target, len(sites)), make([]distribute.Health, len(sites)), make([]int64, len(sites))
	for i, s := range sites {
		current[i] = int64(s.current)
		targets[i] = distribute.Target{Key: s.Deployment.Name, Weight: 1, Max: int64(s.room), Current: current[i]}
		ills[i] = distribute.Health{Blocked: s.blocked, Usable: int64(s.Ready), Probe: 1}
	}
	next := current // counts are bounded, so there are no errors
	if goal, err := distribute.WithFallback(int64(desired), targets, ills, distribute.Options{}); err == nil {
		keepTries(int64(desired), targets, ills, goal.Replicas)
		if step, err := distribute.Replace(int64(desired), current, goal.Replicas, targets, ills); err == nil {
			next = step
		}
	}
	for i, s := range sites {
		d.Parts = append(d.Parts, s.newPart(int(next[i])))
	}
	return max(0, desired-totalRoom(targets))
}

// checkDedications lets the condition report an annotation that dedicates nothing: an invalid one, or
// one on a Reserve of several MachineDeployments.
func (d *Decision) checkDedications() {
	asked, err := machine.ParseDedications(d.Reserve.Annotations[machine.DedicatedAnnotation])
	if len(asked) > 0 && len(d.Parts) > 1 {
		err = fmt.Errorf("spec.pools selects %d MachineDeployments: select a single one", len(d.Parts))
	}
	if err != nil {
		d.Reason, d.Message = reason.Invalid, fmt.Sprintf("the annotation %s is invalid, so the machines are dedicated to nobody: %v; %s",
			machine.DedicatedAnnotation, err, d.Message)
	}
}

func totalRoom(targets []distribute.Target) (room int) {
	for _, t := range targets {
		room += int(t.Max)
	}
	return room
}

// keepTries has a blocked MachineDeployment try to create one machine beyond those that are ready, if
// it would stand in for others with it. Without the try, it would have all that is requested there,
// and be asked to stand in again, without end.
func keepTries(desired int64, targets []distribute.Target, ills []distribute.Health, goal []int64) {
	for i, ill := range ills {
		if !ill.Blocked || goal[i] > ill.Usable {
			continue
		}
		healed := slices.Clone(ills)
		healed[i].Blocked = false
		if able, err := distribute.WithFallback(desired, targets, healed, distribute.Options{}); err == nil {
			goal[i] = max(goal[i], min(ill.Usable+1, able.Replicas[i]))
		}
	}
}

func (s *site) newPart(machines int) Part {
	return Part{Deployment: s.Deployment, Machines: machines, Exist: min(machines, s.Exist), Ready: min(machines, s.Ready), Blocked: s.blocked && machines > 0}
}

// requests returns the annotations that differ from the decisions (laws 3 and 6). It also records
// in each part what counts instead.
func (v View) requests(decisions []Decision) []Request {
	most := map[string]machine.RequestedExcess{}
	for _, d := range decisions {
		for _, p := range d.Parts {
			if has := most[p.Deployment.Name]; p.Machines > int(has.Machines) {
				most[p.Deployment.Name] = machine.RequestedExcess{Reserve: d.Reserve.Name, Machines: int32(p.Machines)}
			}
		}
	}
	for _, d := range decisions {
		for i, p := range d.Parts {
			d.Parts[i].CountedBy = v.countedBy(d.Reserve.Name, p, most[p.Deployment.Name])
		}
	}
	var all []Request
	for _, p := range v.Pools {
		r := Request{Deployment: p.Deployment}
		if m := most[p.Deployment.Name]; m.Machines > 0 {
			r.Text, r.Dedicated = m.String(), dedications(decisions, p.Deployment, m.Machines)
		}
		if p.Deployment.DeletionTimestamp == nil && !r.isMet() {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Request) int { return cmp.Compare(a.Deployment.Name, b.Deployment.Name) })
	return all
}

// isMet reports whether the MachineDeployment has these annotations.
func (r Request) isMet() bool {
	for key, text := range r.Annotations() {
		if is, set := r.Deployment.Annotations[key]; is != text || set && text == "" {
			return false
		}
	}
	return true
}

// Annotations returns the annotations that are requested; empty ones are to be removed.
func (r Request) Annotations() map[string]string {
	return map[string]string{machine.RequestedExcessAnnotation: r.Text, machine.DedicatedAnnotation: r.Dedicated}
}

// countedBy returns what determines the number of spare machines of a MachineDeployment, if not the
// Reserve of this name.
func (v View) countedBy(name string, p Part, most machine.RequestedExcess) string {
	if p.Machines == 0 {
		return ""
	}
	if _, err := pool.WishesOf(p.Deployment); err != nil {
		return ""
	}
	i := slices.IndexFunc(v.Pools, func(q Pool) bool { return q.Deployment == p.Deployment })
	own, source, err := v.Pools[i].Own()
	switch {
	case err == nil && own >= int(most.Machines):
		return source
	case most.Reserve != name:
		return "Reserve " + most.Reserve
	}
	return ""
}

// Own returns how many spare machines a MachineDeployment requests itself, and where.
func (p Pool) Own() (machines int, source string, err error) {
	wishes, err := pool.WishesOf(p.Deployment)
	if wishes.Requested = nil; err != nil {
		return 0, "", err
	}
	own, err := reserve.Effective(wishes, int(pool.Requested(p.Deployment)), p.Allocatable)
	return own.Wish, sourceOf(wishes), err
}

// sourceOf describes where a MachineDeployment's own excess comes from, by precedence.
func sourceOf(w pool.Wishes) string {
	switch {
	case w.Share != nil:
		return "the pool's excess"
	case w.Bounds != nil && w.Bounds.Excess != nil:
		return "the excess in bounds"
	}
	return "spec.excessReplicas"
}

// timeUntil returns how long to wait for a time, up to a limit; 0 if there is no time.
func timeUntil(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(time.Millisecond, min(at.Sub(now), lookAgain))
}

// dedications returns whom the spare machines of a MachineDeployment are dedicated to, at most as
// many as are requested there, and no more of each Reserve than it requests (law 11). If several
// Reserves name an owner, the largest number counts. Of too many owners, the first by name count.
func dedications(decisions []Decision, d *machine.MachineDeployment, machines int32) string {
	most := map[machine.Owner]int32{}
	for _, each := range decisions {
		if len(each.Parts) != 1 || each.Parts[0].Deployment != d {
			continue // a number for several MachineDeployments could not be told apart
		}
		asked, _ := machine.ParseDedications(each.Reserve.Annotations[machine.DedicatedAnnotation]) // an invalid text dedicates nothing
		for _, a := range limited(asked, int32(each.Parts[0].Machines)) {
			most[a.Owner] = max(most[a.Owner], a.Machines)
		}
	}
	var all []machine.Dedication
	for owner, n := range most {
		all = append(all, machine.Dedication{Owner: owner, Machines: n})
	}
	all = limited(all, machines)
	return machine.DedicationsText(all[:min(len(all), machine.MaxDedications)])
}

// limited returns dedications, by owner, of at most this many machines. An owner that is named twice
// counts once, with the larger number.
func limited(all []machine.Dedication, machines int32) []machine.Dedication {
	slices.SortFunc(all, func(a, b machine.Dedication) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(b.Machines, a.Machines))
	})
	all = slices.CompactFunc(all, func(a, b machine.Dedication) bool { return a.Owner == b.Owner })
	for i := range all {
		all[i].Machines = min(all[i].Machines, machines)
		machines -= all[i].Machines
	}
	return slices.DeleteFunc(all, func(a machine.Dedication) bool { return a.Machines == 0 })
}
