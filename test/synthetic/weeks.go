// SPDX-License-Identifier: Apache-2.0

// Package synthetic makes weeks of demand for tests and measurements: equal input, equal weeks.
package synthetic

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/evenkeel/evenkeel/internal/demand"
)

// Monday is when all weeks begin, in UTC.
var Monday = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// Week is a kind of week.
type Week struct {
	Name string
	// Rhythm reports whether the demand of a time of day can be known from other days.
	Rhythm bool
	// rate is how many pods are created in an hour, by the hours since Monday.
	rate func(hour float64) float64
	// bursts are pods that are created at once; nil for none.
	bursts func(chance *rand.Rand) []burst
}

// burst is at some hour since Monday.
type burst struct {
	hour float64
	pods int
}

// Weeks are all kinds.
var Weeks = []Week{
	{Name: "office hours", Rhythm: true, rate: officeHours},
	{Name: "two peaks", Rhythm: true, rate: twoPeaks},
	{Name: "nightly batch", Rhythm: true, rate: constant(2), bursts: nightly},
	{Name: "bursts", rate: constant(6), bursts: anytime},
	{Name: "constant", rate: constant(30)},
}

// Trace returns a number of weeks. Equal seeds make equal weeks.
func (w Week) Trace(weeks int, seed uint64) demand.Trace {
	chance := rand.New(rand.NewPCG(seed, uint64(len(w.Name))))
	var t demand.Trace
	for week := range weeks {
		start := Monday.AddDate(0, 0, 7*week)
		for hour := range 7 * 24 {
			for range poisson(chance, w.rate(float64(hour)+0.5)) {
				t = append(t, shortJob(chance, at(start, float64(hour)+chance.Float64())))
			}
		}
		if w.bursts == nil {
			continue
		}
		for _, b := range w.bursts(chance) {
			for range b.pods {
				t = append(t, shortJob(chance, at(start, b.hour)))
			}
		}
	}
	t.Sort()
	return t
}

// Until returns when a number of weeks ends.
func Until(weeks int) time.Time { return Monday.AddDate(0, 0, 7*weeks) }

func at(start time.Time, hours float64) time.Time {
	return start.Add(time.Duration(hours * float64(time.Hour)).Truncate(time.Second))
}

// shortJob is a job of 1 or 2 CPUs for some minutes.
func shortJob(chance *rand.Rand, created time.Time) demand.Pods {
	cpu := int64(1000 * (1 + chance.IntN(2)))
	minutes := 5 + chance.ExpFloat64()*15
	return demand.Pods{
		Created: created, CPU: cpu, Memory: cpu << 20, Count: 1,
		Lasts: time.Duration(min(minutes, 120) * float64(time.Minute)).Truncate(time.Second),
	}
}

func constant(rate float64) func(float64) float64 { return func(float64) float64 { return rate } }

// officeHours are from 8 to 18 on workdays.
func officeHours(hour float64) float64 {
	if weekend(hour) || timeOfDay(hour) < 8 || timeOfDay(hour) >= 18 {
		return 0.5
	}
	return 60
}

// twoPeaks are at 9 and at 20, on all days.
func twoPeaks(hour float64) float64 {
	peak := func(at float64) float64 { d := timeOfDay(hour) - at; return math.Exp(-d * d / 2) }
	return 3 + 60*peak(9) + 90*peak(20)
}

// nightly is a batch at 2 in the night.
func nightly(*rand.Rand) []burst {
	var all []burst
	for day := range 7 {
		all = append(all, burst{float64(24*day + 2), 40})
	}
	return all
}

// anytime are bursts at unpredictable times.
func anytime(chance *rand.Rand) []burst {
	var all []burst
	for range 20 {
		all = append(all, burst{float64(chance.IntN(7*24*60)) / 60, 5 + chance.IntN(25)})
	}
	return all
}

func weekend(hour float64) bool { return hour >= 5*24 }

func timeOfDay(hour float64) float64 { return math.Mod(hour, 24) }

// poisson draws how often something happens that happens that often on average.
func poisson(chance *rand.Rand, mean float64) int {
	n, product := 0, chance.Float64()
	for limit := math.Exp(-mean); product > limit; n++ {
		product *= chance.Float64()
	}
	return n
}
