// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
)

// barWidth is the number of columns of a bar on a screen of 80 columns; it grows with the screen.
func (s Style) barWidth() int { return min(40, 20+max(0, s.Width-80)/3) }

// replicaBar draws ready replicas, other replicas, and missing ones, to a scale.
func (s Style) replicaBar(ready, there, wanted, scale int) string {
	columns := s.barWidth()
	at := func(n int) int {
		if scale <= 0 || n <= 0 {
			return 0
		}
		// Every part is visible, however small it is.
		return min(columns, max(1, (n*columns+scale/2)/scale))
	}
	m := s.symbols()
	full, part := at(ready), at(max(ready, there))
	gap := at(max(ready, there, wanted))
	return s.colorize(green, strings.Repeat(m.full, full)) + s.colorize(yellow, strings.Repeat(m.part, part-full)) +
		s.colorize(red, strings.Repeat(m.gap, gap-part)) + strings.Repeat(" ", columns-gap)
}

func (s Style) balancers(v overview.Overview) []string {
	var lines []string
	for i, b := range v.Balancers {
		if i > 0 {
			lines = append(lines, "")
		}
		facts := s.keepHead(Sanitize(b.Policy)+", "+plural.Of(b.Replicas, "replica"), s.Width/2)
		lines = append(lines, s.colorize(bold, "BALANCER "+s.cutMiddle(s.objectName(b.Namespace, b.Name), s.Width-textWidth(facts)-12))+"   "+facts)
		name, scale := widest(s.Width/4, mapStrings(b.Targets, func(t overview.Target) string { return t.Name })...), 1
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
	return s.barred(t.Name, name, s.replicaBar(t.Ready, t.Current, t.Wanted, scale), text, t.Why)
}

// barred returns one line with a name, a bar, numbers, and the problem as far as there is room.
func (s Style) barred(name string, columns int, bar, text, why string) string {
	head := "  " + padRight(s.cutMiddle(name, columns), columns) + "  "
	room := s.Width - textWidth(head) - s.barWidth() - 2
	text = s.keepHead(text, room)
	line := head + bar + "  " + text
	if rest := room - textWidth(text) - 2; why != "" && rest >= 10 {
		line += "  " + s.colorize(red, s.keepHead(why, rest))
	}
	return strings.TrimRight(line, " ")
}

func (s Style) federated(v overview.Overview) []string {
	var lines []string
	for i, f := range v.Federated {
		if i > 0 {
			lines = append(lines, "")
		}
		facts := fmt.Sprintf("%s, %d..%d replicas", Sanitize(f.Workload), f.Min, f.Max)
		facts = s.keepHead(facts, s.Width/2)
		lines = append(lines, s.colorize(bold, "FEDERATED HPA "+s.cutMiddle(s.objectName(f.Namespace, f.Name), s.Width-textWidth(facts)-18))+"   "+facts)
		name, scale := widest(s.Width/4, mapStrings(f.Clusters, func(c overview.Cluster) string { return c.Name })...), 1
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
		text += ", " + strings.ToLower(Sanitize(c.State))
	}
	return s.barred(c.Name, name, s.replicaBar(c.Ready, c.Current, c.Desired, scale), text, c.Why)
}
