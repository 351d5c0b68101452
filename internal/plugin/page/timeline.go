// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// timeline shows the last hour, or less if reading started later.
type timeline struct {
	// Span is its duration, in words.
	Span string
	// Since is when reading started. Short reports whether that was less than an hour ago.
	Since time.Time
	Short bool
	// Axis contains the labels below the strips, from left to right.
	Axis []string
	// Steps is the width of each strip in its own units.
	Steps  int
	Strips []strip
	// Table contains the same data as numbers, the newest first.
	Table []entry
}

// strip is one quantity over time, on a scale of its own that begins at zero.
type strip struct {
	Name, Class string
	// Now is the newest value in words, Top the largest value of the scale.
	Now   string
	Top   int
	Lines []line
}

// line is a path in a strip that is Steps wide and stripHeight high.
type line struct{ Class, Path string }

// entry is one row of the table.
type entry struct {
	At                               time.Time
	Replicas, Excess, Ready, Waiting int
}

const (
	// The height of a strip in its own units.
	stripHeight = 100
	// The distance between rows of the table.
	tableStep = 5 * time.Minute
)

// spans are the possible durations. The timeline shows no more than was seen, so that the first
// minutes are not a dot.
var spans = []struct {
	length time.Duration
	name   string
	axis   []string
}{
	{8 * time.Minute, "The last minutes", []string{"8 min ago", "6", "4", "2", "now"}},
	{20 * time.Minute, "The last 20 minutes", []string{"20 min ago", "15", "10", "5", "now"}},
	{span, "The last hour", []string{"60 min ago", "45", "30", "15", "now"}},
}

func newTimeline(h history, now time.Time) timeline {
	shown := spans[len(spans)-1]
	for _, s := range slices.Backward(spans) {
		if now.Truncate(step).Sub(h.since.Truncate(step)) < s.length {
			shown = s
		}
	}
	window := window(h, now, int(shown.length/step))
	replicas := func(s sample) int { return s.replicas }
	excess := func(s sample) int { return s.excess }
	ready := func(s sample) int { return s.ready }
	waiting := func(s sample) int { return s.waiting }
	return timeline{
		Span: shown.name, Axis: shown.axis, Since: h.since, Short: now.Sub(h.since) < span-step, Steps: len(window), Table: newTable(h, now),
		Strips: []strip{
			newStrip("Replicas", "replicas", strconv.Itoa(h.now.replicas), window, series{"line replicas", replicas, false}),
			newStrip("Reserve ready", "reserve", fmt.Sprintf("%d of %d", h.now.ready, h.now.excess), window, series{"area ready", ready, true}, series{"line excess", excess, false}),
			newStrip("Pods waiting", "waiting", podsWaiting(h.now.waiting), window, series{"area waiting", waiting, true}),
		},
	}
}

// window returns the last steps, nil where nothing was read.
func window(h history, now time.Time, length int) []*sample {
	all := make([]*sample, length)
	first := now.Truncate(step).Add(-step * time.Duration(length-1))
	for i := range h.past {
		if at := int(h.past[i].at.Sub(first) / step); at >= 0 && at < length && !h.past[i].at.Before(first) {
			all[at] = &h.past[i]
		}
	}
	return all
}

// series is a quantity to draw: as an area above zero, or as a line.
type series struct {
	class string
	value func(sample) int
	area  bool
}

func podsWaiting(waiting int) string {
	if waiting < 0 {
		return "unknown"
	}
	return strconv.Itoa(waiting)
}

func newStrip(name, class, now string, window []*sample, drawn ...series) strip {
	s := strip{Name: name, Class: class, Now: now, Top: 1}
	for _, d := range drawn {
		for _, at := range window {
			if at != nil {
				s.Top = max(s.Top, d.value(*at))
			}
		}
	}
	for _, d := range drawn {
		s.Lines = append(s.Lines, line{d.class, seriesPath(window, d, s.Top)})
	}
	return s
}

// seriesPath draws a series in steps, because a quantity stays the same until it changes. It leaves
// a gap where nothing was read.
func seriesPath(window []*sample, d series, top int) string {
	var p strings.Builder
	for i := 0; i < len(window); i++ {
		if !hasValue(window[i], d) {
			continue
		}
		end := i
		for end < len(window) && hasValue(window[end], d) {
			end++
		}
		drawSteps(&p, window[i:end], i, d, top)
		i = end
	}
	return p.String()
}

func hasValue(s *sample, d series) bool { return s != nil && d.value(*s) >= 0 }

// drawSteps draws steps without a gap, from x on.
func drawSteps(p *strings.Builder, samples []*sample, x int, d series, top int) {
	last := height(d.value(*samples[0]), top)
	if d.area {
		p.WriteString("M" + strconv.Itoa(x) + " " + strconv.Itoa(stripHeight) + "V" + last)
	} else {
		p.WriteString("M" + strconv.Itoa(x) + " " + last)
	}
	for i, s := range samples {
		if y := height(d.value(*s), top); y != last {
			p.WriteString("H" + strconv.Itoa(x+i) + "V" + y)
			last = y
		}
	}
	p.WriteString("H" + strconv.Itoa(x+len(samples)))
	if d.area {
		p.WriteString("V" + strconv.Itoa(stripHeight) + "Z")
	}
}

func height(value, top int) string {
	return strconv.FormatFloat(stripHeight*(1-float64(value)/float64(top)), 'f', -1, 32)
}

func newTable(h history, now time.Time) []entry {
	var table []entry
	for ago := time.Duration(0); ago < span; ago += tableStep {
		if s, found := h.sampleAt(now.Add(-ago)); found {
			table = append(table, entry{s.at, s.replicas, s.excess, s.ready, s.waiting})
		}
	}
	return table
}

const (
	// How far back the timeline goes.
	span = time.Hour
	// The duration of one step of the timeline.
	step = 10 * time.Second
	// The number of steps of the timeline.
	steps = int(span / step)
)

// sample is what one step of the timeline shows.
type sample struct {
	// at is when the step begins.
	at               time.Time
	replicas, excess int
	// ready is the lowest, waiting the highest number that was seen during the step, so that short
	// events are visible. Waiting is -1 if pods could not be read.
	ready, waiting int
}

// history contains the last hour in steps, the oldest first. Steps in which nothing was read are
// left out.
type history struct {
	// since is when the first overview was read.
	since time.Time
	past  []sample
	// now is the newest overview itself, not the extreme values of its step.
	now sample
}

// record returns the history with one more sample, and without those that are too old. Histories
// that were returned earlier do not change.
func (h history) record(o overview.Overview) history {
	next := history{since: h.since}
	if next.since.IsZero() {
		next.since = o.At
	}
	now := newSample(o)
	next.now = now
	oldest := now.at.Add(step - span)
	next.past = make([]sample, 0, len(h.past)+1)
	for _, s := range h.past {
		switch {
		case s.at.Equal(now.at):
			now.ready, now.waiting = min(now.ready, s.ready), max(now.waiting, s.waiting)
		case !s.at.Before(oldest) && s.at.Before(now.at):
			next.past = append(next.past, s)
		}
	}
	next.past = append(next.past, now)
	return next
}

// sampleAt returns the sample of the step that contains t, if there is one.
func (h history) sampleAt(t time.Time) (sample, bool) {
	i, found := slices.BinarySearchFunc(h.past, t.Truncate(step), func(s sample, t time.Time) int { return s.at.Compare(t) })
	if !found {
		return sample{}, false
	}
	return h.past[i], true
}

func newSample(o overview.Overview) sample {
	s := sample{at: o.At.Truncate(step), waiting: o.PodsWaiting}
	for _, pool := range o.Pools {
		for _, zone := range pool.Zones {
			s.replicas += zone.Replicas
			s.excess += zone.Excess
			s.ready += zone.Count[overview.ReserveReady]
		}
	}
	return s
}
