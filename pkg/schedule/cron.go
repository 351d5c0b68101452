// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// maxLength is the maximum length of a cron time, in bytes.
const maxLength = 128

// Cron is a recurring time. Each field has a bit for each of its values.
type Cron struct {
	minutes, hours, days, months, weekdays uint64
	// eitherDay reports whether both the day of the month and the day of the week are restricted,
	// so that one of them is enough.
	eitherDay bool
}

// field is one of the five fields.
type field struct {
	name     string
	min, max int
	names    []string // of the values, beginning with min
}

var fields = [5]field{
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day of the month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{name: "day of the week", max: 7, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

const (
	everyHour = 1<<24 - 1
	sunday    = 1 << 0
	sunday7   = 1 << 7
)

// longest contains the days of each month in a leap year.
var longest = [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// ParseCron parses five fields, for example "0 7 * * MON-FRI". The error describes what to write.
func ParseCron(text string) (Cron, error) {
	texts := strings.Fields(text)
	if len(text) > maxLength || len(texts) != len(fields) {
		return Cron{}, fmt.Errorf("time %.80q: write five fields (minute, hour, day of the month, month, day of the week), for example \"0 7 * * MON-FRI\"", text)
	}
	var values [5]uint64
	for i, f := range fields {
		var err error
		if values[i], err = f.parse(texts[i]); err != nil {
			return Cron{}, fmt.Errorf("time %q: %w", text, err)
		}
	}
	c := Cron{minutes: values[0], hours: values[1], days: values[2], months: values[3], weekdays: values[4]}
	if c.weekdays&sunday7 != 0 {
		c.weekdays = c.weekdays&^sunday7 | sunday
	}
	c.eitherDay = texts[2][0] != '*' && texts[4][0] != '*'
	if !c.eitherDay && !c.canOccur() {
		return Cron{}, fmt.Errorf("time %q: none of its months has such a day", text)
	}
	return c, nil
}

// canOccur reports whether some month has one of the days.
func (c Cron) canOccur() bool {
	for month := 1; month <= 12; month++ {
		if has(c.months, month) && bits.TrailingZeros64(c.days) <= longest[month] {
			return true
		}
	}
	return false
}

// parse parses a list.
func (f field) parse(text string) (all uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		values, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		all |= values
	}
	return all, nil
}

// parsePart parses a number, a name, a range or *, each with or without a step.
func (f field) parsePart(text string) (uint64, error) {
	span, step, stepped := strings.Cut(text, "/")
	every := 1
	if stepped {
		n, ok := number(step)
		if !ok || n < 1 {
			return 0, fmt.Errorf("%s %q: the step must be a number from 1", f.name, text)
		}
		every = n
	}
	from, to, err := f.parseSpan(span, stepped)
	if err != nil {
		return 0, err
	}
	var values uint64
	for v := from; v <= to; v += every {
		values |= 1 << v
	}
	return values, nil
}

func (f field) parseSpan(text string, stepped bool) (from, to int, err error) {
	if text == "*" {
		return f.min, f.highest(), nil
	}
	first, last, ranged := strings.Cut(text, "-")
	if from, err = f.parseValue(first); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		to, err = f.parseValue(last)
	case stepped:
		to = f.highest()
	default:
		to = from
	}
	if err == nil && from > to {
		err = fmt.Errorf("%s %q: the range must not end before it begins", f.name, text)
	}
	return from, to, err
}

// highest returns the last value that * includes: there, Sunday is 0, and not also 7.
func (f field) highest() int {
	if f.max == 7 {
		return 6
	}
	return f.max
}

func (f field) parseValue(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, ok := number(text)
	if !ok || n < f.min || n > f.max {
		return 0, fmt.Errorf("%s %q: write numbers from %d to %d%s", f.name, text, f.min, f.max, f.orNames())
	}
	return n, nil
}

func (f field) orNames() string {
	if len(f.names) == 0 {
		return ""
	}
	return fmt.Sprintf(", or names from %s to %s", f.names[0], f.names[len(f.names)-1])
}

// number parses up to three digits.
func number(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && len(text) <= 3
}

func has(values uint64, v int) bool { return values&(1<<v) != 0 }
