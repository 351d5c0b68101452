// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/demand"
)

// Goal is what a reserve is for.
type Goal struct {
	// Percentile is how many of 100 pods may wait for Wait at most: more than 0, less than 100.
	Percentile float64
	Wait       time.Duration
	// Zone is the time zone of schedules.
	Zone *time.Location
}

func (g Goal) validate() error {
	switch {
	case !(g.Percentile > 0 && g.Percentile < 100):
		return fmt.Errorf("percentile %v: write a number above 0 and below 100", g.Percentile)
	case g.Wait < 0:
		return errors.New("times must not be negative")
	}
	return nil
}

// lateShare is the part of the pods that may wait longer.
func (g Goal) lateShare() float64 { return (100 - g.Percentile) / 100 }

// Point is a policy with its outcome.
type Point struct {
	Policy
	Outcome
	// Wait is how long pods wait at the percentile of the goal.
	Wait Seconds `json:"waitSeconds"`
}

// Report is the answer to what amount is right.
type Report struct {
	// Points is the frontier: fixed amounts, in ascending order.
	Points []Point
	// Amount is the smallest fixed amount that keeps the goal, nil if none does.
	Amount *Point
	// Schedule is a policy with schedules that keeps the goal and costs less, nil if there is none.
	Schedule *Point
	// Week is when pods are created, and when a reserve is needed.
	Week Week
}

const (
	// worthwhile is the part of the cost of the fixed amount that a schedule has to save.
	worthwhile = 0.2
	// points is about how many amounts a frontier has.
	points = 12
	// maxSchedules is how many schedules a Reserve may have.
	maxSchedules = 64
)

// Size looks for the smallest amount and the cheapest schedule that keep the goal. The frontier
// includes the other amounts that are given.
func Size(trace demand.Trace, setup Setup, goal Goal, others ...int) (Report, error) {
	z := &sizer{trace: trace, setup: setup, goal: goal, known: map[int]Point{}}
	if err := cmp.Or(setup.validate(), goal.validate()); err != nil {
		return Report{}, err
	}
	enough, releases, err := z.enough()
	if err != nil {
		return Report{}, err
	}
	need := newNeed(releases, trace, calendar{setup.From, setup.To, goal.Zone})
	report := Report{Week: need.all.week()}
	if report.Amount, err = z.smallest(enough); err != nil {
		return Report{}, err
	}
	if report.Amount != nil {
		others = append(slices.Clone(others), report.Amount.Machines)
	}
	if report.Points, err = z.frontier(enough, others); err != nil {
		return Report{}, err
	}
	if report.Amount != nil && report.Amount.Machines > 0 {
		report.Schedule, err = z.schedule(need, *report.Amount)
	}
	return report, err
}

// sizer remembers what has been simulated.
type sizer struct {
	trace demand.Trace
	setup Setup
	goal  Goal
	known map[int]Point
}

// fixed simulates a fixed amount.
func (z *sizer) fixed(machines int) (Point, error) {
	if p, known := z.known[machines]; known {
		return p, nil
	}
	p, err := z.try(Fixed(machines))
	if err == nil {
		z.known[machines] = p
	}
	return p, err
}

func (z *sizer) try(policy Policy) (Point, error) {
	outcome, waits, err := run(z.trace, z.setup, policy, nil)
	return Point{policy, outcome, seconds(waits.quantile(z.goal.Percentile / 100))}, err
}

func (z *sizer) keeps(p Point) bool {
	return p.Wait.Duration() <= z.goal.Wait && float64(p.Unbound) <= z.goal.lateShare()*float64(p.Pods)
}

// enough returns an amount that is never used up, or the most that there may be, and what was
// released with it.
func (z *sizer) enough() (machines int, releases []release, err error) {
	limit := z.setup.max()
	for machines = 1; ; machines *= 2 {
		machines, releases = min(machines, limit), nil
		if _, _, err := run(z.trace, z.setup, Fixed(machines), func(r release) { releases = append(releases, r) }); err != nil {
			return 0, nil, err
		}
		most := 0
		for _, r := range releases {
			most = max(most, r.missing)
		}
		if most < machines || machines == limit {
			return most, releases, nil
		}
	}
}

// smallest returns the smallest amount that keeps the goal, by halving: a larger one waits no
// longer, but for the order in which pods are packed.
func (z *sizer) smallest(enough int) (*Point, error) {
	best, err := z.fixed(enough)
	if err != nil || !z.keeps(best) {
		return nil, err
	}
	for low, high := 0, enough; low < high; {
		middle := (low + high) / 2
		p, err := z.fixed(middle)
		if err != nil {
			return nil, err
		}
		if z.keeps(p) {
			best, high = p, middle
		} else {
			low = middle + 1
		}
	}
	return &best, nil
}

// frontier returns amounts from none to enough, and others.
func (z *sizer) frontier(enough int, others []int) ([]Point, error) {
	amounts := append([]int{0, enough}, others...)
	for n := 1.0; n < float64(enough); n = max(n+1, n*growth(enough)) {
		amounts = append(amounts, int(n))
	}
	slices.Sort(amounts)
	var all []Point
	for _, n := range slices.Compact(amounts) {
		p, err := z.fixed(n)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// growth is from one amount of a frontier to the next.
func growth(enough int) float64 {
	if enough <= points {
		return 1
	}
	return 1.5
}

// shares are how many pods may wait, by the profile, as multiples of how many the goal lets wait.
// The profile does not know everything, so each is tried in the simulation: the first that keeps
// the goal is the cheapest.
var shares = []float64{2, 1.3, 1, 0.8, 0.6, 0.4, 0.2, 0.1, 0}

// schedule returns the cheapest policy with schedules that keeps the goal.
func (z *sizer) schedule(n need, fixed Point) (*Point, error) {
	var best *Point
	for _, candidate := range patterns {
		if z.setup.hours() < float64(candidate.days*hoursOfDay) {
			continue
		}
		found, err := z.cheapestPolicy(n, candidate.pattern, fixed)
		if err != nil {
			return nil, err
		}
		if found != nil && found.ReserveHours <= (1-worthwhile)*fixed.ReserveHours && (best == nil || found.ReserveHours < (1-worthwhile)*best.ReserveHours) {
			best = found
		}
	}
	return best, nil
}

// need is when a reserve is needed: on all days, and on every other one.
type need struct{ all, even, odd *profile }

func newNeed(releases []release, trace demand.Trace, c calendar) need {
	return need{
		newProfile(releases, trace, c, func(int) bool { return true }),
		newProfile(releases, trace, c, func(day int) bool { return day%2 == 0 }),
		newProfile(releases, trace, c, func(day int) bool { return day%2 == 1 }),
	}
}

// cheapestPolicy returns the cheapest policy of a pattern that keeps the goal.
func (z *sizer) cheapestPolicy(n need, groups pattern, fixed Point) (*Point, error) {
	boot := slices.Max(z.setup.Boot)
	perChange := changeCost * fixed.ReserveHours
	if !recurs(n.even, n.odd, groups, perChange, z.goal.lateShare()) {
		return nil, nil
	}
	var tried []Policy
	for _, share := range shares {
		days := n.all.chooseDays(groups, int(share*z.goal.lateShare()*float64(fixed.Pods)), perChange)
		policy := newPolicy(groups, days, boot, z.goal.Zone)
		if len(policy.Schedules) > maxSchedules || slices.ContainsFunc(tried, policy.Equal) {
			continue
		}
		tried = append(tried, policy)
		point, err := z.try(policy)
		if err != nil {
			return nil, err
		}
		if z.keeps(point) {
			return &point, nil
		}
	}
	return nil, nil
}
