// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/schedule"
)

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return z
}

// at reads "2026-03-29T03:00:00+02:00", and "2026-03-29 03:00" as UTC.
func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse("2006-01-02 15:04", text)
	}
	if err != nil {
		panic(err)
	}
	return t
}

func cron(text string) schedule.Cron {
	c, err := schedule.ParseCron(text)
	if err != nil {
		panic(err)
	}
	return c
}

func window(start, end, duration, zone string) schedule.Window {
	w, err := schedule.Parse(start, end, duration, zone)
	if err != nil {
		panic(err)
	}
	return w
}

var _ = DescribeTable("The next occurrence (laws 1 to 3)",
	func(text, where, after, want string) {
		next, ok := cron(text).Next(at(after), zone(where))
		Expect(ok).To(BeTrue())
		Expect(next.Equal(at(want))).To(BeTrue(), next.In(zone(where)).Format(time.RFC3339))
		last, ok := cron(text).Last(next, zone(where))
		Expect(ok).To(BeTrue())
		Expect(last.Equal(next)).To(BeTrue(), "the last one at that moment is itself, and not %v", last.In(zone(where)))
		before, ok := cron(text).Last(next.Add(-time.Second), zone(where))
		Expect(ok && !before.After(at(after))).To(BeTrue(), "none lies between, such as %v", before.In(zone(where)))
		again, _ := cron(text).Next(before, zone(where))
		Expect(again.Equal(next)).To(BeTrue(), "%v is not the one before", before.In(zone(where)))
	},
	Entry("later on the same day", "30 7 * * *", "UTC", "2026-01-05 07:29", "2026-01-05 07:30"),
	Entry("not at the very moment", "30 7 * * *", "UTC", "2026-01-05 07:30", "2026-01-06 07:30"),
	Entry("over a weekend", "0 7 * * MON-FRI", "UTC", "2026-01-09 08:00", "2026-01-12 07:00"),
	Entry("a Sunday that is 7", "0 7 * * 7", "UTC", "2026-01-09 08:00", "2026-01-11 07:00"),
	Entry("names in lower case", "0 7 1 jan,jul *", "UTC", "2026-01-09 08:00", "2026-07-01 07:00"),
	Entry("a step", "*/20 9-17/4 * * *", "UTC", "2026-01-09 09:41", "2026-01-09 13:00"),
	Entry("a step from a value", "50/5 * * * *", "UTC", "2026-01-09 09:00", "2026-01-09 09:50"),
	Entry("either day, where both are limited", "0 0 13 * FRI", "UTC", "2026-01-09 00:00", "2026-01-13 00:00"),
	Entry("a day with a star and a step is not limited, as in cron", "0 0 */2 * MON", "UTC", "2026-01-05 00:00", "2026-01-19 00:00"),
	Entry("the 31st, over a short month", "0 0 31 * *", "UTC", "2026-03-31 00:00", "2026-05-31 00:00"),
	Entry("a leap day", "0 0 29 2 *", "UTC", "2026-01-09 00:00", "2028-02-29 00:00"),
	Entry("a leap day over a century without one", "0 0 29 FEB *", "UTC", "2096-03-01 00:00", "2104-02-29 00:00"),
	Entry("the end of a year", "0 0 1 1 *", "Europe/Berlin", "2026-12-31 12:00", "2026-12-31 23:00"),
	// After 2037, no file of time zones lists the changes of the clock any more, but only their rule.
	Entry("over the end of a leap year", "0 7 * * MON-FRI", "Europe/Berlin", "2040-12-28T08:00:00+01:00", "2040-12-31T07:00:00+01:00"),
	Entry("on the last day of a leap year", "0 7 * * *", "Europe/Berlin", "2040-12-31T06:00:00+01:00", "2040-12-31T07:00:00+01:00"),
	Entry("after the last day of a leap year", "0 7 1 * *", "America/New_York", "2040-12-31T19:30:00-05:00", "2041-01-01T07:00:00-05:00"),
	Entry("over the end of a leap year in summer", "0 7 1 1 *", "Australia/Sydney", "2040-12-01T08:00:00+11:00", "2041-01-01T07:00:00+11:00"),
	Entry("in a zone with an odd offset", "0 7 * * *", "Asia/Kathmandu", "2026-01-09 00:00", "2026-01-09 01:15"),

	Entry("skipped in Berlin's spring: when the clock has been changed", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00"),
	Entry("and the day after at its time", "30 2 * * *", "Europe/Berlin", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"),
	Entry("skipped in New York's spring", "0 2 * * SUN", "America/New_York", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00"),
	Entry("twice in Berlin's autumn: the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00"),
	Entry("and not again", "30 2 * * *", "Europe/Berlin", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"),
	Entry("not even where the second time has begun", "30 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00"),
	Entry("twice in New York's autumn: the first time", "15 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00", "2026-11-01T01:15:00-04:00"),
	Entry("every hour, also the second time", "30 * * * *", "Europe/Berlin", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"),
	Entry("every hour, over the hour that is skipped: when the clock has been changed", "30 * * * *", "Europe/Berlin", "2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"),
	Entry("a change of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00"),
	Entry("a whole day that is skipped", "0 12 30 12 *", "Pacific/Apia", "2011-12-29T13:00:00-10:00", "2011-12-31T00:00:00+14:00"),
)

var _ = DescribeTable("A cron time that is wrong says what to write (law 7)",
	func(text, says string) {
		_, err := schedule.ParseCron(text)
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
	Entry("nothing", "", "write five fields"),
	Entry("four fields", "0 7 * *", "write five fields"),
	Entry("six fields", "0 0 7 * * *", "write five fields"),
	Entry("a macro", "@daily", "write five fields"),
	Entry("too long", strings.Repeat("0,", 70)+"0 * * * *", "write five fields"),
	Entry("a minute beyond", "60 7 * * *", "numbers from 0 to 59"),
	Entry("a day of 0", "0 7 0 * *", "numbers from 1 to 31"),
	Entry("a name that is none", "0 7 * * MON-FRY", "names from SUN to SAT"),
	Entry("a backward range", "0 7 * * FRI-MON", "must not end before it begins"),
	Entry("a step of 0", "*/0 7 * * *", "a number from 1"),
	Entry("a sign", "+5 7 * * *", "numbers from 0 to 59"),
	Entry("an empty part", "1,,2 7 * * *", "numbers from 0 to 59"),
	Entry("a huge step", "*/99999999999999999999 7 * * *", "a number from 1"),
	Entry("a date that never comes", "0 0 30 2 *", "none of its months has such a day"),
	Entry("nor in short months", "0 0 31 4,6,9,11 *", "none of its months has such a day"),
)

var _ = DescribeTable("A window that is wrong says what to write",
	func(start, end, duration, zone, says string) {
		_, err := schedule.Parse(start, end, duration, zone)
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
	Entry("no end", "0 7 * * *", "", "", "", "either end or duration"),
	Entry("two ends", "0 7 * * *", "0 8 * * *", "1h", "", "either end or duration"),
	Entry("a start", "7", "0 8 * * *", "", "", "start: "),
	Entry("an end", "0 7 * * *", "8", "", "", "end: "),
	Entry("a short duration", "0 7 * * *", "", "59s", "", "at least 1m"),
	Entry("a negative duration", "0 7 * * *", "", "-2h", "", "at least 1m"),
	Entry("a duration in days", "0 7 * * *", "", "1d", "", "for example 8h"),
	Entry("an unknown zone", "0 7 * * *", "", "1h", "Mars/Olympus", "IANA database"),
	Entry("the zone of the host", "0 7 * * *", "", "1h", "Local", "IANA database"),
	Entry("a path", "0 7 * * *", "", "1h", "../../etc/passwd", "IANA database"),
)

var _ = DescribeTable("A window at an instant (laws 4 and 5)",
	func(w schedule.Window, when string, active bool, change string) {
		is, until := w.At(at(when))
		Expect(is).To(Equal(active))
		Expect(until.Equal(at(change))).To(BeTrue(), until.String())
	},
	Entry("before", window("0 7 * * MON-FRI", "0 19 * * MON-FRI", "", "Europe/Berlin"), "2026-01-05T06:59:59+01:00", false, "2026-01-05T07:00:00+01:00"),
	Entry("from the start on", window("0 7 * * MON-FRI", "0 19 * * MON-FRI", "", "Europe/Berlin"), "2026-01-05T07:00:00+01:00", true, "2026-01-05T19:00:00+01:00"),
	Entry("until the end", window("0 7 * * MON-FRI", "0 19 * * MON-FRI", "", "Europe/Berlin"), "2026-01-05T19:00:00+01:00", false, "2026-01-06T07:00:00+01:00"),
	Entry("over the night", window("0 22 * * *", "0 4 * * *", "", ""), "2026-01-05 01:00", true, "2026-01-05 04:00"),
	Entry("after a start that happened during an outage", window("0 7 * * MON", "0 7 * * FRI", "", ""), "2026-01-07 12:34", true, "2026-01-09 07:00"),
	Entry("with more ends than starts", window("0 7 * * MON", "0 18 * * *", "", ""), "2026-01-07 12:00", false, "2026-01-12 07:00"),
	Entry("with a start at the time of the end", window("0 8 * * *", "0 8 * * *", "", ""), "2026-01-07 08:00", true, "2026-01-08 08:00"),
	Entry("for a duration", window("0 7 * * *", "", "90m", ""), "2026-01-05 08:29", true, "2026-01-05 08:30"),
	Entry("after a duration", window("0 7 * * *", "", "90m", ""), "2026-01-05 08:30", false, "2026-01-06 07:00"),
	Entry("for a duration of days", window("0 0 1 * *", "", "72h", ""), "2026-01-03 23:59", true, "2026-01-04 00:00"),
	Entry("for eight hours over the change in spring", window("0 22 * * *", "", "8h", "Europe/Berlin"), "2026-03-29T06:59:00+02:00", true, "2026-03-29T07:00:00+02:00"),
	Entry("until six over the change in spring", window("0 22 * * *", "0 6 * * *", "", "Europe/Berlin"), "2026-03-29T05:59:00+02:00", true, "2026-03-29T06:00:00+02:00"),
	Entry("for eight hours over the change in autumn", window("0 22 * * *", "", "8h", "America/New_York"), "2026-11-01T04:59:00-05:00", true, "2026-11-01T05:00:00-05:00"),
	Entry("that begins in the hour that is skipped", window("30 2 * * *", "0 5 * * *", "", "Europe/Berlin"), "2026-03-29T03:00:00+02:00", true, "2026-03-29T05:00:00+02:00"),
	Entry("that ends in the hour that is skipped", window("0 1 * * *", "30 2 * * *", "", "Europe/Berlin"), "2026-03-29T01:59:00+01:00", true, "2026-03-29T03:00:00+02:00"),
	Entry("that lies in the hour that is skipped", window("0 2 * * *", "45 2 * * *", "", "Europe/Berlin"), "2026-03-29T03:00:00+02:00", false, "2026-03-30T02:00:00+02:00"),
	Entry("that is the hour that is skipped", window("0 2 * * *", "0 3 * * *", "", "Europe/Berlin"), "2026-03-29T03:00:00+02:00", false, "2026-03-30T02:00:00+02:00"),
	Entry("that ends and begins in the hour that is skipped", window("45 2 * * *", "15 2 * * *", "", "Europe/Berlin"), "2026-03-29T03:00:00+02:00", true, "2026-03-30T02:15:00+02:00"),
	Entry("that ends in the hour that comes twice: the first time", window("0 1 * * *", "30 2 * * *", "", "Europe/Berlin"), "2026-10-25T02:30:00+02:00", false, "2026-10-26T01:00:00+01:00"),
	Entry("on a leap day", window("0 0 29 2 *", "0 0 1 3 *", "", "Europe/Berlin"), "2028-02-29T12:00:00+01:00", true, "2028-03-01T00:00:00+01:00"),
	Entry("on the last day of a leap year", window("0 7 * * *", "0 19 * * *", "", "Europe/Berlin"), "2040-12-31T08:00:00+01:00", true, "2040-12-31T19:00:00+01:00"),
	Entry("every minute for a minute: always", window("* * * * *", "", "1m", "Europe/Berlin"), "2026-10-25T02:30:00+01:00", true, "2026-10-25T02:31:00+01:00"),
)

// Office hours in both zones, hour by hour over a year, against what the clock on the wall shows.
var _ = DescribeTable("Office hours over a year", func(name string) {
	z := zone(name)
	w := window("0 7 * * MON-FRI", "0 19 * * MON-FRI", "", name)
	changes, was := 0, false
	for t := time.Date(2027, 12, 31, 0, 0, 0, 0, z); t.Year() < 2029; t = t.Add(30 * time.Minute) {
		local := t.In(z)
		weekday := local.Weekday() != time.Saturday && local.Weekday() != time.Sunday
		active, change := w.At(t)
		Expect(active).To(Equal(weekday && local.Hour() >= 7 && local.Hour() < 19), local.String())
		Expect(change).To(BeTemporally(">", t), local.String())
		if active != was {
			changes++
		}
		was = active
	}
	Expect(changes).To(Equal(2*261), "workdays from 31 December 2027 on, with a leap day")
},
	Entry(nil, "Europe/Berlin"),
	Entry(nil, "America/New_York"),
)
