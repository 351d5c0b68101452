// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/schedule"
)

// maxChanges limits how many starts and ends of schedules are examined to find the next one that
// matters.
const maxChanges = 200

// term is one request of a Reserve.
type term struct {
	Term
	// window is when its schedule is active; nil for a permanent request.
	window *schedule.Window
	excess []machine.Excess
}

// readTerms reads the requests of a Reserve.
func readTerms(s v1alpha1.ReserveSpec) ([]*term, error) {
	always, err := excessOf(&s.Replicas, s.Amount)
	if err != nil {
		return nil, fmt.Errorf("spec.amount: %w", err)
	}
	terms := []*term{{Term: Term{Active: true}, excess: always}}
	for _, each := range s.Schedules {
		if each.Suspend {
			continue
		}
		window, err := schedule.Parse(string(each.Start), string(each.End), each.Duration, each.TimeZone)
		if err != nil {
			return nil, fmt.Errorf("schedule %s: %w", each.Name, err)
		}
		excess, err := excessOf(each.Replicas, each.Amount)
		if err != nil {
			return nil, fmt.Errorf("schedule %s: %w", each.Name, err)
		}
		terms = append(terms, &term{Term: Term{Schedule: each.Name}, window: &window, excess: excess})
	}
	return terms, nil
}

// excessOf combines a number of machines and an amount, each of which may be missing.
func excessOf(replicas *int32, amount v1alpha1.ReserveAmount) (all []machine.Excess, err error) {
	if replicas != nil {
		count := max(0, *replicas)
		all = append(all, machine.Excess{Count: &count})
	}
	if amount != "" {
		excess, err := machine.ParseExcess(string(amount))
		if err != nil {
			return nil, err
		}
		all = append(all, excess)
	}
	return all, nil
}

// machineCount converts the request of a term to machines.
func (t *term) machineCount(replicas int, least corev1.ResourceList) {
	for _, excess := range t.excess {
		n, err := reserve.MachineCount(excess, replicas, least)
		t.Machines, t.Err = max(t.Machines, n), cmp.Or(t.Err, err)
	}
}

// findActivity determines whether a term is active at an instant, unless that is known.
func (t *term) findActivity(at time.Time) {
	if t.window != nil && !at.Before(t.Until) {
		t.Active, t.Until = t.window.At(at)
	}
}

// totalMachines returns the number of machines that terms result in at an instant, and the active
// schedules. soonest is when that may change; zero if never.
func totalMachines(terms []*term, at time.Time) (machines int, active []string, soonest time.Time, err error) {
	for _, t := range terms {
		if t.findActivity(at); t.Active {
			machines, err = max(machines, t.Machines), cmp.Or(err, t.Err)
			if t.Schedule != "" {
				active = append(active, t.Schedule)
			}
		}
		if !t.Until.IsZero() && (soonest.IsZero() || t.Until.Before(soonest)) {
			soonest = t.Until
		}
	}
	slices.Sort(active)
	return machines, active, soonest, err
}

// copyTerms returns terms as they are now.
func copyTerms(terms []*term) []Term {
	all := make([]Term, len(terms))
	for i, t := range terms {
		all[i] = t.Term
	}
	return all
}

// nextChange returns when terms result in another number of machines, nil if that is not in sight.
// The first term is always active, so terms that result in no more do not matter.
func nextChange(terms []*term, machines int, now time.Time) *Change {
	always := terms[0].Machines
	matter := slices.DeleteFunc(slices.Clone(terms), func(t *term) bool { return t.window != nil && t.Err == nil && t.Machines <= always })
	_, _, at, _ := totalMachines(matter, now)
	for range maxChanges {
		if at.IsZero() {
			return nil
		}
		then, _, soonest, err := totalMachines(matter, at)
		if err != nil {
			return nil
		}
		if then != machines {
			return &Change{At: at, Desired: then}
		}
		at = soonest
	}
	return nil
}
