// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// period is a span of time in which the UTC offset of a zone does not change. An end is zero if
// there is none.
type period struct {
	start, end time.Time
	offset     time.Duration
}

func periodAt(t time.Time, zone *time.Location) period {
	local := t.In(zone)
	start, end := local.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// Where a rule describes all later years, package time ends leap years a day early.
		start, end = end, time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	_, offset := local.Zone()
	return period{start.UTC(), end.UTC(), time.Duration(offset) * time.Second}
}

// next returns the period that begins where this one ends. After the last change that a zone lists,
// package time lets it begin earlier, with the rule for later years.
func (p period) next(zone *time.Location) period {
	n := periodAt(p.end, zone)
	n.start = p.end
	return n
}

// previous returns the period that ends where this one begins.
func (p period) previous(zone *time.Location) period {
	b := periodAt(p.start.Add(-1), zone)
	b.end = p.start
	return b
}

// wallTime returns what clocks show at an instant.
func (p period) wallTime(t time.Time) wall { return t.UTC().Add(p.offset) }

// instant returns when clocks show a wall time.
func (p period) instant(w wall) time.Time { return w.Add(-p.offset) }

// firstWallTime returns the first wall time of a period at which a cron time can occur, depending
// on whether every hour matches. Otherwise, what the clock shows a second time does not count.
func (c Cron) firstWallTime(p period, zone *time.Location) wall {
	begins := p.wallTime(p.start)
	if c.hours == everyHour {
		return begins
	}
	return later(begins, p.previous(zone).wallTime(p.start))
}

// Next returns the first occurrence after an instant, false if there is none within the horizon.
func (c Cron) Next(after time.Time, zone *time.Location) (time.Time, bool) {
	p := periodAt(after, zone)
	from := p.wallTime(after).Add(1)
	if !p.start.IsZero() {
		from = later(from, c.firstWallTime(p, zone))
	}
	for {
		w, ok := c.firstFrom(from)
		if !ok {
			return time.Time{}, false
		}
		if p.end.IsZero() || p.instant(w).Before(p.end) {
			return p.instant(w), true
		}
		change := p.end
		p = p.next(zone)
		if w.Before(p.wallTime(change)) {
			return change, true // the clock skips it
		}
		from = c.firstWallTime(p, zone)
	}
}

// Last returns the last occurrence at or before an instant, false if there is none within the
// horizon.
func (c Cron) Last(at time.Time, zone *time.Location) (time.Time, bool) {
	last, _, ok := c.lastTimes(at, zone)
	return last, ok
}

// lastTimes also returns the wall time that the cron time names, which the clock may have skipped.
func (c Cron) lastTimes(at time.Time, zone *time.Location) (time.Time, wall, bool) {
	p := periodAt(at, zone)
	before := p.wallTime(at).Add(1)
	for {
		w, ok := c.lastBefore(before)
		if !ok || p.start.IsZero() {
			return p.instant(w), w, ok
		}
		if !w.Before(c.firstWallTime(p, zone)) {
			return p.instant(w), w, true
		}
		change := p.start
		begins := p.wallTime(change)
		p = p.previous(zone)
		ends := p.wallTime(change)
		if w.Before(begins) && !w.Before(ends) {
			return change, w, true // the clock skipped it
		}
		before = ends
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
