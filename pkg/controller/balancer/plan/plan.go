// SPDX-License-Identifier: Apache-2.0

// Package plan decides how many replicas each target of a Balancer gets, which targets are blocked,
// and what the status reports. It turns a [View] into a [Plan], and its only memory is the status
// of the Balancer. It is pure, and its laws are those of package balancer.
package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
)

// Plan is what to do about a Balancer. It is at rest if every share's Next is its Current, and
// blocked if Stop describes why nothing can be done.
type Plan struct {
	Stop Hold
	// Shares are in the order of the targets.
	Shares []Share
	// Total is spec.replicas. Overflow and Deficit are its differences from what the limits allow.
	Total, Overflow, Deficit int64
	// ShareError is the largest distance from an exact share, as a part of all replicas.
	ShareError float64
	// Strangers are names in the proportions that no target has, and Negative those with a share
	// below 0, which counts as none.
	Strangers, Negative []string
	// Again is the time until the next sync without an event; 0 means never.
	Again time.Duration
}

// Share is the part of the plan for one target.
type Share struct {
	Name string
	Hold Hold
	// Base is its share if all targets are healthy, Desired its goal, Next what it is scaled to now
	// on the way there, and Current what it was scaled to before.
	Base, Desired, Next, Current int64
	// Fallback is how many of its replicas other targets run instead, as far as they have room.
	Fallback int64
	health   health
}

// Moving reports whether the plan changes the replicas of the target.
func (s Share) Moving() bool { return s.Next != s.Current }

// Blocked reports whether the target does not start its replicas.
func (s Share) Blocked() bool { return s.health.blocked }

// New makes a plan. It is total: it returns a plan for any object.
func New(v View) Plan {
	spec := v.Balancer.Spec
	p := Plan{Total: Total(spec), Stop: obstacle(v)}
	p.Strangers, p.Negative = strangers(spec)
	for _, t := range v.Targets {
		p.Shares = append(p.Shares, unchanged(t, memory(v.Balancer, t.Spec.Name)))
	}
	var targets []distribute.Target
	p.attempt(func() error {
		targets = p.targets(v)
		return p.setBases(targets)
	})
	d := doctor{now: v.Now, back: v.Back, fallback: spec.Policy.Fallback, stopped: p.Stop != (Hold{})}
	p.examine(v, d)
	p.attempt(func() error { return p.setGoals(v, targets, d) })
	p.attempt(func() error { return p.setNext(v) })
	return p
}

// attempt takes a step towards the plan, unless nothing can be done.
func (p *Plan) attempt(step func() error) {
	if p.Stop != (Hold{}) {
		return
	}
	if err := step(); err != nil {
		p.Stop = Hold{v1alpha1.PhaseApplyingPolicy, "Invalid", err.Error()}
	}
}

// unchanged returns the share of a target that stays as it is.
func unchanged(t Target, m v1alpha1.TargetStatus) Share {
	s := Share{Name: t.Spec.Name, Hold: t.Hold, Current: t.Current}
	switch {
	case t.Absent:
		s.Current = 0
	case !t.Known:
		s.Current = int64(m.Replicas)
	}
	s.Base, s.Desired, s.Next = s.Current, s.Current, s.Current
	return s
}

// examine examines the health of all targets.
func (p *Plan) examine(v View, d doctor) {
	for i, t := range v.Targets {
		s := &p.Shares[i]
		s.health = d.examine(t, memory(v.Balancer, s.Name), s.Base)
		if m := memory(v.Balancer, s.Name); s.health.blocked {
			s.Fallback = int64(m.Fallback)
		}
		p.wakeAt(s.health.again, v.Now)
	}
}

// ChangesBlocked reports whether a target is blocked in the plan and not in the status, or the
// reverse. The status is the memory of that: targets are scaled accordingly only after the status
// is written, otherwise each sync would decide again.
func (p Plan) ChangesBlocked(v View) bool {
	return slices.ContainsFunc(p.Shares, func(s Share) bool {
		return s.health.blockedSince.IsZero() != (memory(v.Balancer, s.Name).BlockedSince == nil)
	})
}

// Current is the result of a plan that was not carried out.
func (p Plan) Current() Outcome {
	var o Outcome
	for _, s := range p.Shares {
		o = append(o, s.Current)
	}
	return o
}

func (p *Plan) wakeAt(at, now time.Time) {
	if at.IsZero() {
		return
	}
	// A timeout is over only after its end.
	if in := max(0, at.Sub(now)) + time.Millisecond; p.Again == 0 || in < p.Again {
		p.Again = in
	}
}

// Total returns spec.replicas: 1 if it is not set, and never less than 0.
func Total(spec v1alpha1.BalancerSpec) int64 {
	if spec.Replicas == nil {
		return 1
	}
	return max(0, int64(*spec.Replicas))
}

// obstacle returns why nothing can be done at all.
func obstacle(v View) Hold {
	if v.Rival != "" {
		return Hold{v1alpha1.PhaseApplyingPolicy, "Conflict", fmt.Sprintf(
			"target %s is scaled by the older Balancer %s: remove it from one of the two", v.Contested, v.Rival)}
	}
	if what := invalid(v.Balancer.Spec); what != "" {
		return Hold{v1alpha1.PhaseApplyingPolicy, "Invalid", what}
	}
	return Hold{}
}

// targets returns the targets with their limits and their places in the policy.
func (p *Plan) targets(v View) []distribute.Target {
	targets, claims := make([]distribute.Target, len(v.Targets)), claimsOf(v.Balancer.Spec)
	for i, t := range v.Targets {
		lo, hi := bounds(t, p.Total, v.Balancer)
		c := claims[t.Spec.Name]
		targets[i] = distribute.Target{Key: t.Spec.Name, Tier: c.tier, Weight: c.weight, Min: lo, Max: hi}
	}
	return targets
}

// setBases sets the replicas that each target should have if all are healthy.
func (p *Plan) setBases(targets []distribute.Target) error {
	well, err := distribute.Distribute(p.Total, targets, distribute.Options{})
	if err != nil {
		return err
	}
	for i := range p.Shares {
		p.Shares[i].Base = well.Replicas[i]
	}
	p.ShareError = well.MaxShareError
	return nil
}

// setGoals sets the replicas that each target should have in the end. A target that does not exist
// keeps its share, and gets none of what others do not start.
func (p *Plan) setGoals(v View, targets []distribute.Target, d doctor) error {
	ills := make([]distribute.Health, len(targets))
	for i, s := range p.Shares {
		if v.Targets[i].Absent {
			targets[i].Max = s.Base
		}
		ills[i] = d.asHealth(s.health)
	}
	placed, err := distribute.WithFallback(p.Total, targets, ills, distribute.Options{})
	if err != nil {
		return err
	}
	for i := range p.Shares {
		p.Shares[i].Desired, p.Shares[i].Fallback = placed.Replicas[i], placed.Fallback[i]
	}
	p.Overflow, p.Deficit = placed.Overflow, placed.Deficit
	return nil
}

// bounds returns the limits of a target. A target that must not be changed keeps what it has. If
// that cannot be observed, it is taken from memory; without memory, or if the target does not exist,
// its share is kept for it.
func bounds(t Target, total int64, b *v1alpha1.Balancer) (lo, hi int64) {
	if t.Hold != (Hold{}) && t.Known {
		return t.Current, t.Current
	}
	if m := memory(b, t.Spec.Name); t.Hold != (Hold{}) && !t.Absent && m.Replicas > 0 {
		return int64(m.Replicas), int64(m.Replicas)
	}
	lo, hi = resolveLimit(t.Spec.MinReplicas, total, 0), distribute.Unbounded
	if t.Spec.MaxReplicas != nil {
		hi = max(lo, resolveLimit(t.Spec.MaxReplicas, total, 99))
	}
	if t.Capped && (hi == distribute.Unbounded || hi > t.Current) {
		hi = max(lo, t.Current)
	}
	switch t.Spec.State {
	case v1alpha1.Draining:
		hi = lo
	case v1alpha1.Drained:
		lo, hi = 0, 0
	}
	return lo, hi
}

// resolveLimit returns a number, or a percentage of total. It adds hundredths before it rounds
// down.
func resolveLimit(l *intstr.IntOrString, total, hundredths int64) int64 {
	if l == nil {
		return 0
	}
	if percent, ok := percentage(*l); ok {
		return (total*percent + hundredths) / 100
	}
	return int64(l.IntVal)
}

func memory(b *v1alpha1.Balancer, name string) v1alpha1.TargetStatus {
	for _, t := range b.Status.Targets {
		if t.Name == name {
			return t
		}
	}
	return v1alpha1.TargetStatus{}
}

// setNext sets the next replicas of each target: as far from the current ones towards the goal as
// is safe now.
func (p *Plan) setNext(v View) error {
	n := len(p.Shares)
	current, ready, goal := make([]int64, n), make([]int64, n), make([]int64, n)
	var usable, all int64
	machines := false
	for i, s := range p.Shares {
		t := v.Targets[i]
		goal[i], current[i] = s.Desired, s.Current
		ready[i] = min(s.health.ready, s.Current)
		switch {
		case !t.Known:
			current[i], ready[i] = s.Desired, 0
		case s.Hold != (Hold{}):
			usable += min(s.Desired, s.health.ready)
		case s.health.blocked:
			usable += min(s.Desired, s.health.expected(max(s.Base, s.Desired)))
		default:
			usable += s.Desired
		}
		machines = machines || t.Machines
		all += s.Desired
	}
	surge, unavailable := transitionLimits(v.Balancer.Spec.Transition, all, machines)
	want := min(p.Total, usable)
	want += assumeReady(v.Targets, current, ready, want)
	next, err := distribute.Step(current, ready, goal, want, surge+p.lingering(v.Targets), unavailable)
	if err != nil {
		return fmt.Errorf("move towards %v: %w", goal, err)
	}
	for i := range p.Shares {
		if p.Shares[i].Next = next[i]; !v.Targets[i].Known {
			p.Shares[i].Next = p.Shares[i].Current
		}
	}
	return nil
}

// assumeReady takes all replicas of a target for ready if any of them may go, and returns how many
// more these are. If none is ready, and those of other targets suffice, they may go as others do.
func assumeReady(targets []Target, current, ready []int64, want int64) (more int64) {
	var available int64
	for _, n := range ready {
		available += n
	}
	for i, t := range targets {
		if t.AnyMayGo && (ready[i] > 0 || available < want) {
			more += current[i] - ready[i]
			ready[i] = current[i]
		}
	}
	return more
}

// lingering returns how many replicas stay for now although they are beyond the goal, because any of them
// may go, and will hardly become ready: those of blocked targets, and those of drained ones that are not
// ready. They take no room from those that other targets run in their place.
func (p *Plan) lingering(targets []Target) (n int64) {
	for i, s := range p.Shares {
		t, beyond := targets[i], max(0, s.Current-s.Desired)
		switch state := t.Spec.State; {
		case !t.Known || !t.AnyMayGo:
		case s.health.blocked:
			n += beyond
		case state == v1alpha1.Drained || state == v1alpha1.Draining:
			n += min(beyond, max(0, s.Current-s.health.ready))
		}
	}
	return n
}

// transitionLimits returns how many replicas a move may add to the desired ones, and how many ready
// ones it may remove.
func transitionLimits(t *v1alpha1.Transition, all int64, machines bool) (surge, unavailable int64) {
	surge = max(1, (all*25+99)/100)
	if machines {
		surge = 1
	}
	if t != nil {
		if unavailable = resolveLimit(t.MaxUnavailable, all, 99); t.MaxSurge != nil {
			surge = resolveLimit(t.MaxSurge, all, 99)
		}
	}
	if surge <= 0 && unavailable <= 0 {
		surge = 1
	}
	return max(0, surge), max(0, unavailable)
}

// Ask is one write of a workload's scale.
type Ask struct {
	// Target is the target's name in the Balancer.
	Target   string
	Object   Object
	From, To int64
}

// After returns the Balancer as it is after a plan, and the scales that the plan writes.
func (v View) After(p Plan) (*v1alpha1.Balancer, []Ask) {
	var o Outcome
	var asks []Ask
	for i, s := range p.Shares {
		o = append(o, s.Current)
		if s.Moving() && p.Stop == (Hold{}) && !v.Balancer.Spec.Paused {
			o[i] = s.Next
			asks = append(asks, Ask{s.Name, v.Targets[i].Object, s.Current, s.Next})
		}
	}
	b := v.Balancer.DeepCopy()
	b.Status = NewStatus(v, p, o)
	return b, asks
}
