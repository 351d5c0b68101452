// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// period is a stretch of time in which the offset of a zone does not change. Its ends are zero where there are none.
type period struct {
	start, end time.Time
	offset     time.Duration
}

func periodAt(t time.Time, zone *time.Location) period {
	local := t.In(zone)
	start, end := local.ZoneBounds()
	_, offset := local.Zone()
	return period{start.UTC(), end.UTC(), time.Duration(offset) * time.Second}
}

func (p period) next(zone *time.Location) period { return periodAt(p.end, zone) }

func (p period) previous(zone *time.Location) period { return periodAt(p.start.Add(-1), zone) }

// shows is what clocks show at an instant.
func (p period) shows(t time.Time) wall { return t.UTC().Add(p.offset) }

// instant is when clocks show a wall time.
func (p period) instant(w wall) time.Time { return w.Add(-p.offset) }

// opens is the first wall time of a period at which a cron time can occur, for one that every hour matches or not: what the clock shows
// a second time is over otherwise.
func (c Cron) opens(p period, zone *time.Location) wall {
	begins := p.shows(p.start)
	if c.hours == everyHour {
		return begins
	}
	return later(begins, p.previous(zone).shows(p.start))
}

// Next is the first occurrence after an instant. It is false if there is none in sight.
func (c Cron) Next(after time.Time, zone *time.Location) (time.Time, bool) {
	p := periodAt(after, zone)
	from := p.shows(after).Add(1)
	if !p.start.IsZero() {
		from = later(from, c.opens(p, zone))
	}
	for {
		w, ok := c.first(from)
		if !ok {
			return time.Time{}, false
		}
		if p.end.IsZero() || p.instant(w).Before(p.end) {
			return p.instant(w), true
		}
		change := p.end
		p = p.next(zone)
		if w.Before(p.shows(change)) {
			return change, true // the clock skips it
		}
		from = c.opens(p, zone)
	}
}

// Last is the last occurrence at or before an instant. It is false if there is none in sight.
func (c Cron) Last(at time.Time, zone *time.Location) (time.Time, bool) {
	p := periodAt(at, zone)
	before := p.shows(at).Add(1)
	for {
		w, ok := c.last(before)
		if !ok || p.start.IsZero() {
			return p.instant(w), ok
		}
		if !w.Before(c.opens(p, zone)) {
			return p.instant(w), true
		}
		change := p.start
		begins := p.shows(change)
		p = p.previous(zone)
		ends := p.shows(change)
		if w.Before(begins) && !w.Before(ends) {
			return change, true // the clock skipped it
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
