// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel/pkg/overview"
)

// machines lists each machine of a pool.
func (s Style) machines(v overview.Overview, p overview.Pool) []string {
	lines := []string{}
	name, node := len("MACHINE"), len("NODE")
	for _, z := range p.Zones {
		name = max(name, widest(s.Width/3, texts(z.Machines, func(m overview.Machine) string { return m.Name })...))
		node = max(node, widest(s.Width/4, texts(z.Machines, func(m overview.Machine) string { return m.Node })...))
	}
	row := func(cells ...string) string {
		return "  " + left(cells[0], name) + "  " + left(cells[1], 15) + right(cells[2], 6) + right(cells[3], 6) + "  " + left(cells[4], node)
	}
	for _, z := range p.Zones {
		if len(z.Machines) == 0 {
			continue
		}
		if len(lines) == 0 {
			lines = append(lines, "", s.paint(dim, strings.TrimRight(row("MACHINE", "STATE", "SINCE", "PODS", "NODE"), " ")))
		}
		for _, m := range z.Machines {
			line := row(s.clip(m.Name, name), string(m.State), age(m.Since, v.At), podsText(m.Pods), s.clip(m.Node, node))
			if rest := s.Width - width(line) - 2; m.Why != "" && rest > 8 {
				line += "  " + s.clip(m.Why, rest)
			}
			lines = append(lines, s.paint(stateHue(m), strings.TrimRight(line, " ")))
		}
	}
	return lines
}

// stateHue leaves most machines without a colour, so that those which matter stand out.
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
