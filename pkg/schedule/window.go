// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // the image contains no time zones
)

// Window is active from each start until the next end, or for a duration.
type Window struct {
	start Cron
	end   *Cron
	lasts time.Duration
	zone  *time.Location
}

// Parse parses a window: a start with either an end or a duration, and a time zone (UTC if empty).
// The error describes what to write.
func Parse(start, end, duration, zone string) (w Window, err error) {
	if w.start, err = ParseCron(start); err != nil {
		return w, fmt.Errorf("start: %w", err)
	}
	if w.zone, err = location(zone); err != nil {
		return w, err
	}
	switch {
	case (end == "") == (duration == ""):
		return w, errors.New("set either end or duration")
	case end != "":
		ends, err := ParseCron(end)
		if err != nil {
			return w, fmt.Errorf("end: %w", err)
		}
		w.end = &ends
		return w, nil
	}
	if w.lasts, err = time.ParseDuration(duration); err != nil || w.lasts < time.Minute {
		return w, fmt.Errorf("duration %.40q: write at least 1m, for example 8h or 1h30m", duration)
	}
	return w, nil
}

func location(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name) // UTC for an empty name
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("time zone %.64q is unknown: use a name of the IANA database, for example Europe/Berlin", name)
	}
	return zone, nil
}

// At reports whether a window is active at an instant, and when that may change; zero if no change
// is within the horizon.
func (w Window) At(t time.Time) (active bool, change time.Time) {
	started, from, ever := w.start.lastTimes(t, w.zone)
	if !ever {
		change, _ = w.start.Next(t, w.zone)
		return false, change
	}
	if w.end == nil {
		active, change = t.Sub(started) < w.lasts, started.Add(w.lasts)
	} else {
		ended, to, has := w.end.lastTimes(t, w.zone)
		active = !has || cmp.Or(ended.Compare(started), to.Compare(from)) <= 0
		change, _ = w.end.Next(t, w.zone)
	}
	if !active {
		change, _ = w.start.Next(t, w.zone)
	}
	return active, change
}
