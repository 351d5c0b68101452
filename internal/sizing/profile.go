// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/demand"
)

const (
	daysOfWeek = 7
	hoursOfDay = 24
)

// hour is an hour of a day of the week, or of several days.
type hour struct {
	// hours is how often it occurs in the time that is simulated.
	hours float64
	// created is how many pods were created in it.
	created int
	// pods is how many pods needed a machine of the reserve, by the number of machines that were
	// missing in the reserve then: an amount of less would have let them wait.
	pods map[int]int
}

// profile contains the need for a reserve by hours, as local clocks show them, and the number of
// all pods.
type profile struct {
	hours [daysOfWeek][hoursOfDay]hour
	pods  int
}

// calendar reads times as local clocks show them.
type calendar struct {
	from, to time.Time
	zone     *time.Location
}

// newProfile reads what was released while the reserve had enough for everybody, on some days.
func newProfile(releases []release, trace demand.Trace, c calendar, counts func(day int) bool) *profile {
	p := &profile{}
	for d := range p.hours {
		for h := range p.hours[d] {
			p.hours[d][h].pods = map[int]int{}
		}
	}
	for t := c.from; t.Before(c.to); {
		next := earlier(t.Truncate(time.Hour).Add(time.Hour), c.to)
		if counts(c.dayNumber(t)) {
			p.at(t.In(c.zone)).hours += next.Sub(t).Hours()
		}
		t = next
	}
	for _, r := range releases {
		if counts(c.dayNumber(r.at)) {
			p.at(r.at.In(c.zone)).add(r)
		}
	}
	for _, pods := range trace {
		if c.contains(pods.Created) && counts(c.dayNumber(pods.Created)) {
			p.at(pods.Created.In(c.zone)).created += pods.Count
			p.pods += pods.Count
		}
	}
	return p
}

func (c calendar) contains(t time.Time) bool { return !t.Before(c.from) && t.Before(c.to) }

// dayNumber counts days since 1970.
func (c calendar) dayNumber(t time.Time) int {
	year, month, day := t.In(c.zone).Date()
	return int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / int64(hoursOfDay*time.Hour/time.Second))
}

func (p *profile) at(local time.Time) *hour { return &p.hours[weekday(local)][local.Hour()] }

// weekday counts from Monday.
func weekday(t time.Time) int { return (int(t.Weekday()) + daysOfWeek - 1) % daysOfWeek }

// add counts the pods of a release. They are spread evenly over its machines: with a smaller
// amount, only some of them would wait.
func (h *hour) add(r release) {
	for i := range r.machines {
		h.pods[r.missing-i] += r.pods*(i+1)/r.machines - r.pods*i/r.machines
	}
}

// mergeDays returns the hours of a day with the needs of several days.
func (p *profile) mergeDays(days []int) [hoursOfDay]hour {
	var joined [hoursOfDay]hour
	for h := range joined {
		joined[h].pods = map[int]int{}
		for _, d := range days {
			joined[h].hours += p.hours[d][h].hours
			for missing, n := range p.hours[d][h].pods {
				joined[h].pods[missing] += n
			}
		}
	}
	return joined
}

// countLate returns how many pods wait if an amount is kept.
func (h hour) countLate(amount int) int {
	n := 0
	for missing, pods := range h.pods {
		if missing > amount {
			n += pods
		}
	}
	return n
}

// levels returns the amounts that make a difference, in ascending order.
func (p *profile) levels() []int {
	all := map[int]bool{0: true}
	for d := range p.hours {
		for h := range p.hours[d] {
			for missing := range p.hours[d][h].pods {
				all[missing] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), cmp.Compare)
}

// Hour is what an hour of a day of the week needs.
type Hour struct {
	// Hours is how often the hour occurs in the time that is simulated.
	Hours float64 `json:"hours"`
	// Pods is how many pods are created in it on average.
	Pods float64 `json:"pods"`
	// Machines is how many machines of a reserve were in use at most.
	Machines int `json:"machines"`
}

// Week contains the hours of the days of a week, counted from Monday.
type Week [daysOfWeek][hoursOfDay]Hour

func (p *profile) week() (w Week) {
	for d := range p.hours {
		for h, hour := range p.hours[d] {
			w[d][h] = Hour{Hours: hour.hours}
			if hour.hours > 0 {
				w[d][h].Pods = float64(hour.created) / hour.hours
			}
			for missing := range hour.pods {
				w[d][h].Machines = max(w[d][h].Machines, missing)
			}
		}
	}
	return w
}
