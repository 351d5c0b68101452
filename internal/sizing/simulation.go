// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// patience is how long after the end the simulation waits for pods that were created before it.
const patience = 24 * time.Hour

// simulation is one MachineDeployment with its pods.
type simulation struct {
	Setup
	amounts amounts
	now     time.Time
	events  events

	machines []*machine
	// born is how many machines have been created.
	born int
	// replicas, applied and the others are what the rule of the reserve remembers.
	replicas int
	applied  reserve.Applied
	retry    reserve.Retry
	lowered  reserve.Lowered
	// desired is the amount of the policy now.
	desired int
	// changed reports whether the rule of the reserve has to decide again.
	changed bool
	// freed are machines that have got room.
	freed []*machine

	shapes shapes
	// scanning reports whether the autoscaler is about to look.
	scanning  bool
	templates []*machine

	outcome Outcome
	waits   waits
	// marked is how many machines are in reserve.
	marked int
	// observe is called if machines are released for pods; may be nil.
	observe func(release)
}

// release is a number of machines that left the reserve for pods.
type release struct {
	at       time.Time
	machines int
	// missing is how many machines of the reserve, as far as the maximum allows it, are not ready
	// after it.
	missing int
	pods    int
}

// Run simulates a policy.
func Run(trace demand.Trace, setup Setup, policy Policy) (Outcome, error) {
	outcome, _, err := run(trace, setup, policy, nil)
	return outcome, err
}

func run(trace demand.Trace, setup Setup, policy Policy, observe func(release)) (Outcome, waits, error) {
	if err := setup.validate(); err != nil {
		return Outcome{}, nil, err
	}
	amounts, err := policy.parse()
	if err != nil {
		return Outcome{}, nil, err
	}
	s := &simulation{Setup: setup, amounts: amounts, now: setup.From, waits: waits{}, observe: observe}
	s.applied.Max = s.max()
	s.shapes = newShapes(trace, setup)
	rest := s.begin(trace)
	for steps := 0; s.step(&rest); steps++ {
		if steps%256 == 0 && s.Interrupted != nil && s.Interrupted() {
			return Outcome{}, nil, ErrInterrupted
		}
	}
	return s.finish(), s.waits, nil
}

// begin creates the machines that exist at the beginning, and returns the pods that are created
// later.
func (s *simulation) begin(trace demand.Trace) demand.Trace {
	for len(trace) > 0 && trace[0].Created.Before(s.From) {
		s.startEarly(trace[0])
		trace = trace[1:]
	}
	for len(s.machines) < s.Min {
		s.addReady(false)
	}
	s.replicas = len(s.machines)
	s.resize()
	s.applied.Excess = s.excess()
	for range s.applied.Excess {
		s.addReady(true)
	}
	s.settle()
	end, _ := slices.BinarySearchFunc(trace, s.To, func(p demand.Pods, to time.Time) int { return p.Created.Compare(to) })
	return trace[:end]
}

// step lets happen what happens next, and reports whether anything did.
func (s *simulation) step(rest *demand.Trace) bool {
	at, any := s.events.next()
	if len(*rest) > 0 {
		if created := (*rest)[0].Created; !any || created.Before(at) {
			at, any = created, true
		}
	}
	if !any || at.After(s.To) && s.shapes.waiting() == 0 || at.After(s.To.Add(patience)) {
		return false
	}
	s.advance(at)
	s.events.happen(at)
	for len(*rest) > 0 && !(*rest)[0].Created.After(at) {
		s.arrive((*rest)[0])
		*rest = (*rest)[1:]
	}
	s.reactToChange()
	return true
}

// advance adds up the cost until an instant.
func (s *simulation) advance(to time.Time) {
	if end := earlier(to, s.To); end.After(s.now) {
		hours := end.Sub(s.now).Hours()
		s.outcome.MachineHours += hours * float64(len(s.machines))
		s.outcome.ReserveHours += hours * float64(s.marked)
	}
	s.now = to
}

// reactToChange does what everything does that looks at machines and pods: the rule of the reserve,
// the scheduler, instant release, and the autoscaler.
func (s *simulation) reactToChange() {
	if s.changed {
		s.settle()
	}
	s.bindPods()
	for s.release() {
		s.settle()
	}
	if s.Autoscaler != nil && !s.scanning && s.shapes.unseen && s.shapes.waiting() > 0 {
		s.scanning = true
		s.events.plan(s.now.Add(s.Autoscaler.Up), s.runAutoscaler)
	}
	s.shapes.unseen = false
}

// resize adopts the amount of the policy, and does it again when it changes.
func (s *simulation) resize() {
	desired, until := s.amounts.at(s.now)
	s.changed = s.changed || desired != s.desired
	s.desired = desired
	if !until.IsZero() && until.Before(s.To) {
		s.events.plan(until, s.resize)
	}
}

func (s *simulation) finish() Outcome {
	s.advance(later(s.now, s.To))
	for _, shape := range s.shapes.all {
		for _, w := range shape.queue {
			s.outcome.Unbound += w.count
			s.outcome.Late += w.count
			s.waits[s.To.Add(patience).Sub(w.created)] += w.count
		}
	}
	o := s.outcome
	for _, n := range s.waits {
		o.Pods += n
	}
	o.Median, o.P95, o.P99, o.Longest = seconds(s.waits.quantile(0.5)), seconds(s.waits.quantile(0.95)), seconds(s.waits.quantile(0.99)), seconds(s.waits.quantile(1))
	return o
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// event happens at a time.
type event struct {
	at time.Time
	// number decides between events of the same time: the one that was planned first.
	number int
	happen func()
}

// events are sorted by time.
type events struct {
	heap    eventHeap
	planned int
}

func (e *events) plan(at time.Time, happen func()) {
	e.planned++
	heap.Push(&e.heap, event{at, e.planned, happen})
}

// next returns the time of the next event.
func (e *events) next() (time.Time, bool) {
	if len(e.heap) == 0 {
		return time.Time{}, false
	}
	return e.heap[0].at, true
}

// happen lets all events happen that are due.
func (e *events) happen(now time.Time) {
	for len(e.heap) > 0 && !e.heap[0].at.After(now) {
		heap.Pop(&e.heap).(event).happen()
	}
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}
