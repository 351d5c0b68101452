// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/schedule"
)

// Policy is how many machines are kept in reserve: the larger of a fixed number and the schedules
// that are active, as in a Reserve.
type Policy struct {
	Machines  int                        `json:"machines"`
	Schedules []v1alpha1.ReserveSchedule `json:"schedules,omitempty"`
}

// Fixed is the same amount at any time.
func Fixed(machines int) Policy { return Policy{Machines: machines} }

// Equal reports whether two policies keep the same machines by the same schedules.
func (p Policy) Equal(other Policy) bool {
	return p.Machines == other.Machines && equality.Semantic.DeepEqual(p.Schedules, other.Schedules)
}

// amounts is a policy that has been read.
type amounts struct {
	always  int
	windows []window
}

type window struct {
	schedule.Window
	machines int
}

func (p Policy) parse() (amounts, error) {
	a := amounts{always: p.Machines}
	for _, s := range p.Schedules {
		w, err := schedule.Parse(string(s.Start), string(s.End), s.Duration, s.TimeZone)
		if err != nil {
			return a, fmt.Errorf("schedule %s: %w", s.Name, err)
		}
		if s.Replicas != nil && !s.Suspend {
			a.windows = append(a.windows, window{w, int(*s.Replicas)})
		}
	}
	return a, nil
}

// at returns the number of machines at an instant, and when that may change; zero if never.
func (a amounts) at(t time.Time) (machines int, until time.Time) {
	machines = a.always
	for _, w := range a.windows {
		active, change := w.At(t)
		if active {
			machines = max(machines, w.machines)
		}
		if !change.IsZero() && (until.IsZero() || change.Before(until)) {
			until = change
		}
	}
	return machines, until
}

// Step is a change of the amount.
type Step struct {
	At       time.Time
	Machines int
}

// Steps returns the amounts from an instant on, and all changes of them before another one.
func (p Policy) Steps(from, to time.Time) ([]Step, error) {
	a, err := p.parse()
	if err != nil {
		return nil, err
	}
	var steps []Step
	for at := from; !at.IsZero() && at.Before(to); {
		machines, until := a.at(at)
		if len(steps) == 0 || steps[len(steps)-1].Machines != machines {
			steps = append(steps, Step{at, machines})
		}
		at = until
	}
	return steps, nil
}
