// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math/bits"
	"time"
)

// wall is a time as clocks show it, without a time zone. It is stored as a time in UTC.
type wall = time.Time

// horizon is how many years are searched. The next 29th of February can be eight years away.
const horizon = 9

// matches reports whether the month and the day match.
func (c Cron) matches(day wall) bool {
	onDate, onWeekday := has(c.days, day.Day()), has(c.weekdays, int(day.Weekday()))
	if c.eitherDay {
		return onDate || onWeekday
	}
	return onDate && onWeekday
}

// firstFrom returns the first match at or after a wall time.
func (c Cron) firstFrom(from wall) (wall, bool) {
	from = ceilMinute(from)
	day := midnight(from)
	minute := int(from.Sub(day) / time.Minute)
	for end := day.AddDate(horizon, 0, 0); day.Before(end); minute = 0 {
		if !has(c.months, int(day.Month())) {
			day = day.AddDate(0, 1, 1-day.Day())
			continue
		}
		if c.matches(day) {
			if m, ok := c.atOrAfter(minute); ok {
				return day.Add(time.Duration(m) * time.Minute), true
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return wall{}, false
}

// lastBefore returns the last match before a wall time.
func (c Cron) lastBefore(before wall) (wall, bool) {
	before = ceilMinute(before)
	day := midnight(before)
	minute := int(before.Sub(day)/time.Minute) - 1
	for end := day.AddDate(-horizon, 0, 0); day.After(end); minute = 24*60 - 1 {
		if !has(c.months, int(day.Month())) {
			day = day.AddDate(0, 0, -day.Day())
			continue
		}
		if c.matches(day) {
			if m, ok := c.atOrBefore(minute); ok {
				return day.Add(time.Duration(m) * time.Minute), true
			}
		}
		day = day.AddDate(0, 0, -1)
	}
	return wall{}, false
}

// atOrAfter returns the first matching minute of the day at or after this one.
func (c Cron) atOrAfter(minute int) (int, bool) {
	hour := minute / 60
	if has(c.hours, hour) {
		if rest := c.minutes >> (minute % 60); rest != 0 {
			return minute + bits.TrailingZeros64(rest), true
		}
	}
	later := c.hours >> (hour + 1)
	if later == 0 {
		return 0, false
	}
	return (hour+1+bits.TrailingZeros64(later))*60 + bits.TrailingZeros64(c.minutes), true
}

// atOrBefore returns the last matching minute of the day at or before this one.
func (c Cron) atOrBefore(minute int) (int, bool) {
	if minute < 0 {
		return 0, false
	}
	hour := minute / 60
	if has(c.hours, hour) {
		if rest := c.minutes & (1<<(minute%60+1) - 1); rest != 0 {
			return hour*60 + bits.Len64(rest) - 1, true
		}
	}
	earlier := c.hours & (1<<hour - 1)
	if earlier == 0 {
		return 0, false
	}
	return (bits.Len64(earlier)-1)*60 + bits.Len64(c.minutes) - 1, true
}

// ceilMinute rounds a time up to a full minute.
func ceilMinute(t wall) wall {
	if floor := t.Truncate(time.Minute); !floor.Equal(t) {
		return floor.Add(time.Minute)
	}
	return t
}

func midnight(t wall) wall {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
