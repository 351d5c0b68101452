// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeline is the last hour.
type timeline struct {
	// Since is when reading began; Short says that it was less than an hour ago.
	Since time.Time
	Short bool
	// Steps is the width of each strip in its own units.
	Steps  int
	Strips []strip
	// Table is the same in numbers, the newest first.
	Table []entry
}

// strip is one quantity over time, on a scale of its own that begins with zero.
type strip struct {
	Name, Class string
	// Now is the newest value in words, Top the largest that the scale holds.
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
	// How far apart the rows of the table are.
	tableStep = 5 * time.Minute
)

func newTimeline(h history, now time.Time) timeline {
	window := window(h, now)
	last := h.last()
	replicas := func(s sample) int { return s.replicas }
	excess := func(s sample) int { return s.excess }
	ready := func(s sample) int { return s.ready }
	waiting := func(s sample) int { return s.waiting }
	return timeline{
		Since: h.since, Short: now.Sub(h.since) < span-step, Steps: steps, Table: newTable(h, now),
		Strips: []strip{
			newStrip("Replicas", "replicas", strconv.Itoa(last.replicas), window, series{"line replicas", replicas, false}),
			newStrip("Reserve ready", "reserve", fmt.Sprintf("%d of %d", last.ready, last.excess), window, series{"area ready", ready, true}, series{"line excess", excess, false}),
			newStrip("Pods waiting", "waiting", pods(last.waiting), window, series{"area waiting", waiting, true}),
		},
	}
}

// window is the last hour, one entry per step, nil where nothing was read.
func window(h history, now time.Time) []*sample {
	all := make([]*sample, steps)
	first := now.Truncate(step).Add(step - span)
	for i := range h.past {
		if at := int(h.past[i].at.Sub(first) / step); at >= 0 && at < steps && !h.past[i].at.Before(first) {
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

func pods(waiting int) string {
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
		s.Lines = append(s.Lines, line{d.class, path(window, d, s.Top)})
	}
	return s
}

// path goes from step to step at right angles: a quantity is what it is until it changes. Where nothing was read there
// is a gap.
func path(window []*sample, d series, top int) string {
	var p strings.Builder
	for i := 0; i < len(window); i++ {
		if !known(window[i], d) {
			continue
		}
		end := i
		for end < len(window) && known(window[end], d) {
			end++
		}
		run(&p, window[i:end], i, d, top)
		i = end
	}
	return p.String()
}

func known(s *sample, d series) bool { return s != nil && d.value(*s) >= 0 }

// run draws steps without a gap, the first of which is at x.
func run(p *strings.Builder, samples []*sample, x int, d series, top int) {
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
		if s, found := h.at(now.Add(-ago)); found {
			table = append(table, entry{s.at, s.replicas, s.excess, s.ready, s.waiting})
		}
	}
	return table
}
