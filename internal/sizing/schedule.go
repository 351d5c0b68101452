// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// pattern divides the days of the week, counted from Monday, into groups with equal schedules.
type pattern [][]int

// patterns are tried if the demand covers as many days.
var patterns = []struct {
	days int
	pattern
}{
	{2, pattern{{0, 1, 2, 3, 4, 5, 6}}},
	{daysOfWeek, pattern{{0, 1, 2, 3, 4}, {5, 6}}},
	{3 * daysOfWeek, pattern{{0}, {1}, {2}, {3}, {4}, {5}, {6}}},
}

// changeCost is what a change of the amount has to save each time, as a part of the cost of a fixed
// amount: schedules stay short.
const changeCost = 0.02

// day is an amount for each hour.
type day [hoursOfDay]int

// chooser finds the cheapest amounts for the hours of a day.
type chooser struct {
	levels []int
	// perPod is what a pod that waits costs, and perChange what a change of the amount costs, in
	// machine hours.
	perPod, perChange float64
}

// choose minimizes the cost of machines, pods that wait and changes, hour by hour.
func (c chooser) choose(hours [hoursOfDay]hour) day {
	var came [hoursOfDay][]int
	costs := make([]float64, len(c.levels))
	for h := range hours {
		cheapest := least(costs)
		came[h] = make([]int, len(c.levels))
		next := make([]float64, len(c.levels))
		for i, amount := range c.levels {
			before := i
			if h > 0 && costs[cheapest]+c.perChange < costs[i] {
				before = cheapest
			}
			came[h][i] = before
			next[i] = costs[before] + hours[h].hours*float64(amount) + c.perPod*float64(hours[h].countLate(amount))
			if before != i {
				next[i] += c.perChange
			}
		}
		costs = next
	}
	var d day
	for h, i := hoursOfDay-1, least(costs); h >= 0; h-- {
		d[h] = c.levels[i]
		i = came[h][i]
	}
	return d
}

// least returns the index of the smallest number, the first of several.
func least(costs []float64) int {
	best := 0
	for i, cost := range costs {
		if cost < costs[best] {
			best = i
		}
	}
	return best
}

// chooseDays finds the smallest price of a waiting pod with which at most some pods wait, and
// returns the amounts of each group of days.
func (p *profile) chooseDays(groups pattern, most int, perChange float64) []day {
	joined := make([][hoursOfDay]hour, len(groups))
	for g, days := range groups {
		joined[g] = p.mergeDays(days)
	}
	levels := p.levels()
	try := func(exponent float64) (chosen []day) {
		for _, hours := range joined {
			chosen = append(chosen, chooser{levels, math.Pow(10, exponent), perChange}.choose(hours))
		}
		return chosen
	}
	low, high := -12.0, 12.0
	best := try(high)
	for range 24 {
		middle := (low + high) / 2
		if chosen := try(middle); p.countLate(groups, chosen) <= most {
			best, high = chosen, middle
		} else {
			low = middle
		}
	}
	return best
}

// countLate returns how many pods wait with these amounts.
func (p *profile) countLate(groups pattern, days []day) int {
	n := 0
	for g, d := range days {
		for h, hour := range p.mergeDays(groups[g]) {
			n += hour.countLate(d[h])
		}
	}
	return n
}

// foretold is the part of the pods that may wait on days that were not known when the amounts were
// chosen, if the goal lets fewer wait. A rhythm leaves a few more than usual; bursts at random
// times leave most.
const foretold = 0.05

// recurs reports whether the amounts that every other day needs are enough for the days between, if
// a part of the pods may wait.
func recurs(even, odd *profile, groups pattern, perChange, mayWait float64) bool {
	late := 0
	for _, half := range [][2]*profile{{even, odd}, {odd, even}} {
		chosen := half[0].chooseDays(groups, int(mayWait*float64(half[0].pods)), perChange/2) // of half the days
		late += half[1].countLate(groups, chosen)
	}
	return float64(late) <= max(mayWait, foretold)*float64(even.pods+odd.pods)
}

// leadStep is what the time before a window, in which machines boot, is rounded up to.
const leadStep = 5 * time.Minute

// newPolicy turns the amounts of groups of days into schedules that begin early enough for machines
// to boot.
func newPolicy(groups pattern, days []day, boot time.Duration, zone *time.Location) Policy {
	p := Policy{Machines: days[0][0]}
	for _, d := range days {
		p.Machines = min(p.Machines, slices.Min(d[:]))
	}
	lead := (boot + leadStep - 1) / leadStep * leadStep
	for g, d := range days {
		for from := 0; from < hoursOfDay; {
			to := from + 1
			for to < hoursOfDay && d[to] == d[from] {
				to++
			}
			if d[from] > p.Machines {
				p.Schedules = append(p.Schedules, newSchedule(groups[g], from, to, d[from], lead, zone))
			}
			from = to
		}
	}
	return p
}

// newSchedule returns a schedule for some hours of some days.
func newSchedule(days []int, from, to, machines int, lead time.Duration, zone *time.Location) v1alpha1.ReserveSchedule {
	begins := time.Duration(from)*time.Hour - lead
	days = slices.Clone(days)
	for begins < 0 {
		begins += hoursOfDay * time.Hour
		for i := range days {
			days[i] = (days[i] + daysOfWeek - 1) % daysOfWeek
		}
	}
	slices.Sort(days)
	hour, minute := int(begins/time.Hour), int(begins%time.Hour/time.Minute)
	s := v1alpha1.ReserveSchedule{
		Name:     fmt.Sprintf("%s-%02d%02d", strings.ToLower(nameOfDays(days)), hour, minute),
		Start:    v1alpha1.CronText(fmt.Sprintf("%d %d * * %s", minute, hour, cronOfDays(days))),
		Replicas: ptr.To(int32(machines)),
	}
	if name := zone.String(); name != time.UTC.String() {
		s.TimeZone = name
	}
	if to < hoursOfDay && lead <= time.Duration(from)*time.Hour {
		s.End = v1alpha1.CronText(fmt.Sprintf("0 %d * * %s", to, cronOfDays(days)))
	} else {
		s.Duration = strings.TrimSuffix((time.Duration(to-from)*time.Hour + lead).String(), "0s")
	}
	return s
}

var dayNames = [daysOfWeek]string{"MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}

// cronOfDays names days, counted from Monday and sorted, as a cron time does.
func cronOfDays(days []int) string {
	if len(days) == daysOfWeek {
		return "*"
	}
	var parts []string
	for i := 0; i < len(days); {
		last := i
		for last+1 < len(days) && days[last+1] == days[last]+1 {
			last++
		}
		switch {
		case days[last] == daysOfWeek-1 && last > i, last == i+1: // in cron, a week ends on Saturday
			for ; i <= last; i++ {
				parts = append(parts, dayNames[days[i]])
			}
		case last == i:
			parts = append(parts, dayNames[days[i]])
		default:
			parts = append(parts, dayNames[days[i]]+"-"+dayNames[days[last]])
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}

func nameOfDays(days []int) string {
	if len(days) == daysOfWeek {
		return "daily"
	}
	return strings.ReplaceAll(cronOfDays(days), ",", "-")
}
