// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// barWidth is how many columns a bar has at 80 columns; it grows with the screen.
func (s Style) barWidth() int { return min(40, 20+max(0, s.Width-80)/3) }

// bar shows so many that are ready, such as are there, and such as are wanted and not there, of a scale.
func (s Style) bar(ready, there, wanted, scale int) string {
	columns := s.barWidth()
	at := func(n int) int {
		if scale <= 0 || n <= 0 {
			return 0
		}
		// What there is shows, however little it is.
		return min(columns, max(1, (n*columns+scale/2)/scale))
	}
	m := s.marks()
	full, part := at(ready), at(max(ready, there))
	gap := at(max(ready, there, wanted))
	return s.paint(green, strings.Repeat(m.full, full)) + s.paint(yellow, strings.Repeat(m.part, part-full)) +
		s.paint(red, strings.Repeat(m.gap, gap-part)) + strings.Repeat(" ", columns-gap)
}

func (s Style) balancers(v overview.Overview) []string {
	var lines []string
	for i, b := range v.Balancers {
		if i > 0 {
			lines = append(lines, "")
		}
		facts := s.head(clean(b.Policy)+", "+count(b.Replicas, "replica"), s.Width/2)
		lines = append(lines, s.paint(bold, "BALANCER "+s.clip(s.name(b.Namespace, b.Name), s.Width-width(facts)-12))+"   "+facts)
		name, scale := widest(s.Width/4, texts(b.Targets, func(t overview.Target) string { return t.Name })...), 1
		for _, t := range b.Targets {
			scale = max(scale, t.Wanted, t.Current)
		}
		for _, t := range b.Targets {
			lines = append(lines, s.target(t, name, scale))
		}
	}
	return lines
}

func (s Style) target(t overview.Target, name, scale int) string {
	limits := fmt.Sprintf("%d..", t.Min)
	if t.Max != nil {
		limits += fmt.Sprint(*t.Max)
	}
	text := fmt.Sprintf("%d of %d ready", t.Ready, t.Wanted)
	if t.Current != t.Wanted {
		text += fmt.Sprintf(", has %d", t.Current)
	}
	if t.Min > 0 || t.Max != nil {
		text += ", limits " + limits
	}
	return s.barred(t.Name, name, s.bar(t.Ready, t.Current, t.Wanted, scale), text, t.Why)
}

// barred is one line with a name, a bar, numbers, and what is wrong as far as there is room.
func (s Style) barred(name string, columns int, bar, text, why string) string {
	head := "  " + left(s.clip(name, columns), columns) + "  "
	room := s.Width - width(head) - s.barWidth() - 2
	text = s.head(text, room)
	line := head + bar + "  " + text
	if rest := room - width(text) - 2; why != "" && rest >= 10 {
		line += "  " + s.paint(red, s.head(why, rest))
	}
	return strings.TrimRight(line, " ")
}

func (s Style) federated(v overview.Overview) []string {
	var lines []string
	for i, f := range v.Federated {
		if i > 0 {
			lines = append(lines, "")
		}
		facts := fmt.Sprintf("%s, %d..%d replicas", clean(f.Workload), f.Min, f.Max)
		facts = s.head(facts, s.Width/2)
		lines = append(lines, s.paint(bold, "FEDERATED HPA "+s.clip(s.name(f.Namespace, f.Name), s.Width-width(facts)-18))+"   "+facts)
		name, scale := widest(s.Width/4, texts(f.Clusters, func(c overview.Cluster) string { return c.Name })...), 1
		for _, c := range f.Clusters {
			scale = max(scale, c.Max, c.Current, c.Desired)
		}
		for _, c := range f.Clusters {
			lines = append(lines, s.cluster(c, name, scale))
		}
	}
	return lines
}

func (s Style) cluster(c overview.Cluster, name, scale int) string {
	text := fmt.Sprintf("%d of %d ready, share %d..%d", c.Ready, c.Desired, c.Min, c.Max)
	switch {
	case !c.Reachable:
		text += ", unreachable"
	case c.Limited:
		text += ", at its max"
	case c.State != "" && c.State != "Used":
		text += ", " + strings.ToLower(clean(c.State))
	}
	return s.barred(c.Name, name, s.bar(c.Ready, c.Current, c.Desired, scale), text, c.Why)
}
