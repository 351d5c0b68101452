// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/schedule"
)

// brute lists the occurrences between two instants by looking at each minute, as the laws have it.
func brute(fields [5]func(int) bool, either, hourly bool, from, to time.Time, z *time.Location) []time.Time {
	matches := func(w time.Time) bool {
		date, weekday := fields[2](w.Day()), fields[4](int(w.Weekday()))
		day := date && weekday
		if either {
			day = date || weekday
		}
		return fields[0](w.Minute()) && fields[1](w.Hour()) && fields[3](int(w.Month())) && day
	}
	shows := func(t time.Time) time.Time {
		_, offset := t.In(z).Zone()
		return t.UTC().Add(time.Duration(offset) * time.Second)
	}
	var all []time.Time
	start := from.Add(-26 * time.Hour)
	highest := shows(start.Add(-time.Minute))
	for t := start; !t.After(to); t = t.Add(time.Minute) {
		w, occurs := shows(t), false
		for skipped := highest.Add(time.Minute); skipped.Before(w); skipped = skipped.Add(time.Minute) {
			occurs = occurs || matches(skipped)
		}
		if w.After(highest) || hourly {
			occurs = occurs || matches(w)
		}
		if w.After(highest) {
			highest = w
		}
		if occurs && t.After(from) {
			all = append(all, t)
		}
	}
	return all
}

// drawn is a field with its text.
func drawn(t *rapid.T, name string, min, max int) (string, func(int) bool) {
	switch rapid.IntRange(0, 3).Draw(t, name) {
	case 0:
		return "*", func(int) bool { return true }
	case 1:
		step := rapid.IntRange(1, 7).Draw(t, "step")
		return fmt.Sprintf("*/%d", step), func(v int) bool { return (v-min)%step == 0 }
	case 2:
		a := rapid.IntRange(min, max).Draw(t, "from")
		b := rapid.IntRange(a, max).Draw(t, "to")
		return fmt.Sprintf("%d-%d", a, b), func(v int) bool { return a <= v && v <= b }
	}
	a, b := rapid.IntRange(min, max).Draw(t, "one"), rapid.IntRange(min, max).Draw(t, "two")
	return fmt.Sprintf("%d,%d", a, b), func(v int) bool { return v == a || v == b }
}

// places are zones, each near a time at which it changes its offset, or at which a day is special.
var places = []struct{ zone, near string }{
	{"Europe/Berlin", "2026-03-29 00:00"}, {"Europe/Berlin", "2026-10-25 00:00"}, {"America/New_York", "2026-03-08 06:00"}, {"America/New_York", "2026-11-01 05:00"},
	{"America/St_Johns", "2026-03-08 06:00"}, {"America/St_Johns", "2026-11-01 05:00"}, {"Australia/Lord_Howe", "2026-10-03 15:00"}, {"Australia/Lord_Howe", "2026-04-04 15:00"},
	{"UTC", "2028-02-29 00:00"}, {"Asia/Kathmandu", "2040-12-31 00:00"}, {"Europe/Berlin", "2026-07-15 12:00"},
}

var _ = It("Occurrences are those that looking at each minute finds (laws 1 to 3)", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		var texts [5]string
		var fields [5]func(int) bool
		for i, limits := range [5][2]int{{0, 59}, {0, 23}, {1, 28}, {1, 12}, {0, 6}} {
			texts[i], fields[i] = drawn(t, fmt.Sprint("field ", i), limits[0], limits[1])
		}
		hourly := true
		for h := range 24 {
			hourly = hourly && fields[1](h)
		}
		either := texts[2][0] != '*' && texts[4][0] != '*'
		place := rapid.SampledFrom(places).Draw(t, "place")
		z := zone(place.zone)
		from := at(place.near).Add(time.Duration(rapid.IntRange(-20*60*60, 20*60*60).Draw(t, "seconds")) * time.Second)
		to := from.Add(30 * time.Hour).Truncate(time.Minute)
		text := strings.Join(texts[:], " ")
		c := cron(text)
		want := brute(fields, either, hourly, from.Truncate(time.Minute), to, z)
		if from != from.Truncate(time.Minute) { // what occurs at full minutes after from
			for len(want) > 0 && !want[0].After(from) {
				want = want[1:]
			}
		}
		var got []time.Time
		for next, ok := c.Next(from, z); ok && !next.After(to); next, ok = c.Next(next, z) {
			got = append(got, next.UTC())
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q after %v in %v:\n got %v\nwant %v", text, from, z, got, want)
		}
		var back []time.Time
		for last, ok := c.Last(to, z); ok && last.After(from); last, ok = c.Last(last.Add(-time.Nanosecond), z) {
			back = append([]time.Time{last.UTC()}, back...)
		}
		if fmt.Sprint(back) != fmt.Sprint(want) {
			t.Fatalf("%q back from %v in %v:\n got %v\nwant %v", text, to, z, back, want)
		}
	})
})

var _ = It("A window stays as it is until the change that it reports (law 6)", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		times := []string{"0 7 * * *", "30 2 * * *", "15 */6 * * *", "*/30 * * * *", "0 0 * * MON", "0 0 29 2 *", "0 22 1-7 * FRI"}
		start, end, duration := rapid.SampledFrom(times).Draw(t, "start"), rapid.SampledFrom(times).Draw(t, "end"), ""
		if rapid.Bool().Draw(t, "for a duration") {
			end, duration = "", rapid.SampledFrom([]string{"1m", "45m", "3h", "24h", "200h", "999999h"}).Draw(t, "duration")
		}
		w := window(start, end, duration, rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York"}).Draw(t, "zone"))
		from := at("2026-01-01 00:00").Add(time.Duration(rapid.IntRange(0, 5*365*24*60).Draw(t, "minutes")) * time.Minute)
		active, change := w.At(from)
		if rapid.Bool().Draw(t, "from a change on") {
			from = change
			active, change = w.At(from)
		}
		if change.IsZero() {
			t.Fatalf("no change in sight of %s %s %s", start, end, duration)
		}
		if !change.After(from) {
			t.Fatalf("the change at %v is not after %v", change, from)
		}
		part := time.Duration(rapid.OneOf(rapid.Int64Range(0, int64(change.Sub(from)-1)), rapid.Just(int64(change.Sub(from)-1))).Draw(t, "later"))
		if still, then := w.At(from.Add(part)); still != active || then.Before(change) {
			t.Fatalf("%v at %v until %v, but %v at %v until %v", active, from, change, still, from.Add(part), then)
		}
	})
})

// days draws a cron time for days that are rare, or that do not exist.
func days(t *rapid.T) string {
	day, _ := drawn(t, "day", 28, 31)
	month, _ := drawn(t, "month", 1, 12)
	return fmt.Sprintf("0 0 %s %s *", day, month)
}

var _ = It("Any text is answered (law 7)", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9*/,MON-]{1,9}( [0-9*/,MON-]{1,9}){4}`), rapid.Custom(days)).Draw(t, "text")
		c, err := schedule.ParseCron(text)
		if err != nil {
			return
		}
		from := at("2026-01-01 00:00")
		if next, ok := c.Next(from, time.UTC); !ok || !next.After(from) {
			t.Fatalf("%q never occurs", text)
		}
		if last, ok := c.Last(from, time.UTC); !ok || last.After(from) {
			t.Fatalf("%q never occurred", text)
		}
	})
})
