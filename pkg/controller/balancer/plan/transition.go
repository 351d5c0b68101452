// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
)

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
