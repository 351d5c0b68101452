// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// machines lists each machine of a pool.
func (s Style) machines(v overview.Overview, p overview.Pool) []string {
	var lines []string
	t := s.machineTable(p)
	for _, z := range p.Zones {
		for _, m := range z.Machines {
			if len(lines) == 0 {
				lines = append(lines, "", s.colorize(dim, t.formatRow("MACHINE", "STATE", "SINCE", "PODS", "NODE")))
			}
			line := t.formatRow(s.cutMiddle(m.Name, t.name), string(m.State), formatAge(m.Since, v.At), podsText(m.Pods), s.cutMiddle(m.Node, t.node))
			if rest := s.Width - textWidth(line) - 2; m.Why != "" && rest > 8 {
				line += "  " + s.keepHead(m.Why, rest)
			}
			lines = append(lines, s.colorize(stateHue(m), line))
		}
	}
	return lines
}

// machineTable contains the widths of the columns; node is 0 if there is no room for it.
type machineTable struct{ name, node int }

func (s Style) machineTable(p overview.Pool) machineTable {
	t := machineTable{name: len("MACHINE"), node: len("NODE")}
	for _, z := range p.Zones {
		t.name = max(t.name, widest(s.Width/2-5, mapStrings(z.Machines, func(m overview.Machine) string { return m.Name })...))
		t.node = max(t.node, widest(s.Width/3, mapStrings(z.Machines, func(m overview.Machine) string { return m.Node })...))
	}
	const others, least = 2 + 2 + 15 + 6 + 6 + 2, 12
	if room := s.Width - others - t.name; room < min(t.node, least) {
		t.node = 0
	} else {
		t.node = min(t.node, room)
	}
	return t
}

func (t machineTable) formatRow(name, state, since, pods, node string) string {
	line := "  " + padRight(name, t.name) + "  " + padRight(state, 15) + padLeft(since, 6) + padLeft(pods, 6)
	if t.node > 0 {
		line += "  " + node
	}
	return strings.TrimRight(line, " ")
}

// stateHue leaves most machines without a color, so that the important ones stand out.
func stateHue(m overview.Machine) hue {
	if m.State == overview.Working {
		return plain
	}
	return looks[m.State].hue
}

func podsText(n int) string {
	if n < 0 {
		return "?"
	}
	return strconv.Itoa(n)
}
