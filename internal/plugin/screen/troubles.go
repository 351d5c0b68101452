// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// mostTroubles is how many problems are shown, the worst first.
const mostTroubles = 20

// troubles describes the problems and what to do, or that there are none.
func (s Style) troubles(v overview.Overview) []string {
	switch {
	case len(v.Troubles) > 0:
	case len(v.Pools)+len(v.Reserves)+len(v.Balancers)+len(v.Federated)+len(v.Buffers) == 0 && s.Spaces:
		return []string{"No objects found in any namespace."}
	case len(v.Pools)+len(v.Reserves)+len(v.Balancers)+len(v.Federated)+len(v.Buffers) == 0:
		return []string{"No objects found in this namespace; use -A for all namespaces."}
	default:
		return []string{s.colorize(green, "No problems found.")}
	}
	lines := []string{s.colorize(bold, fmt.Sprintf("PROBLEMS (%d)", len(v.Troubles)))}
	for i, t := range v.Troubles {
		if i == mostTroubles {
			return append(lines, fmt.Sprintf("  and %d more: use -o json to see all", len(v.Troubles)-i))
		}
		lines = append(lines, s.trouble(t)...)
	}
	return lines
}

// trouble returns one line if the screen is wide enough, otherwise several.
func (s Style) trouble(t overview.Trouble) []string {
	m := s.symbols()
	head := s.object(t.Object) + ": " + Sanitize(t.What)
	if whole := "  " + m.bullet + " " + head + " " + m.arrow + " " + Sanitize(t.Do); textWidth(whole) <= s.Width {
		return []string{"  " + s.colorize(red, m.bullet) + " " + head + " " + s.colorize(cyan, m.arrow+" "+Sanitize(t.Do))}
	}
	var lines []string
	for i, line := range wrapText(head, s.Width-4) {
		lead := "    "
		if i == 0 {
			lead = "  " + s.colorize(red, m.bullet) + " "
		}
		lines = append(lines, lead+line)
	}
	indent := textWidth(m.arrow) + 1
	for i, line := range wrapText(t.Do, s.Width-4-indent) {
		lead := strings.Repeat(" ", indent)
		if i == 0 {
			lead = m.arrow + " "
		}
		lines = append(lines, "    "+s.colorize(cyan, lead+line))
	}
	return lines
}

// object returns the object of a problem, without what is obvious.
func (s Style) object(text string) string {
	parts := strings.SplitN(Sanitize(text), "/", 3)
	if len(parts) != 3 {
		return Sanitize(text)
	}
	if parts[0] == "machinedeployment" {
		return s.objectName(parts[1], parts[2])
	}
	return parts[0] + " " + s.objectName(parts[1], parts[2])
}
