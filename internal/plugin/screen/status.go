// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
)

// Status returns everything as lines.
func Status(v overview.Overview, s Style) []string {
	s.Width = max(s.Width, Narrowest)
	lines := []string{s.titleLine(v)}
	for _, section := range [][]string{s.poolLines(v), s.reserves(v), s.balancers(v), s.federated(v), s.buffers(v), s.requests(v), s.troubles(v), s.missing(v), s.legend(v)} {
		if len(section) > 0 {
			lines = append(append(lines, ""), section...)
		}
	}
	return lines
}

// titleLine sums up the overview.
func (s Style) titleLine(v overview.Overview) string {
	machines := 0
	for _, p := range v.Pools {
		for _, z := range p.Zones {
			machines += len(z.Machines)
		}
	}
	parts := []string{v.At.UTC().Format("15:04:05 UTC"), plural.Of(len(v.Pools), "pool"), plural.Of(machines, "machine")}
	if len(v.Balancers) > 0 {
		parts = append(parts, plural.Of(len(v.Balancers), "Balancer"))
	}
	if len(v.Federated) > 0 {
		parts = append(parts, plural.Of(len(v.Federated), "federated HPA"))
	}
	if v.PodsWaiting > 0 {
		parts = append(parts, plural.Of(v.PodsWaiting, "pod")+" waiting")
	}
	title := strings.Join(parts, "   ")
	if textWidth(title) > s.Width {
		title = strings.Join(parts, ", ")
	}
	return s.colorize(bold, s.keepHead(title, s.Width))
}

func (s Style) missing(v overview.Overview) []string {
	var lines []string
	for _, m := range v.Missing {
		for i, line := range wrapText("not read: "+m, s.Width-2) {
			if i > 0 {
				line = "  " + line
			}
			lines = append(lines, s.colorize(dim, line))
		}
	}
	return lines
}

// sign is one thing in the legend.
type sign struct {
	mark, means string
	hue         hue
}

// legend explains the symbols, in as few lines as possible.
func (s Style) legend(v overview.Overview) []string {
	var lines []string
	if len(v.Pools) > 0 {
		lines = append(lines, s.legendLines(mapStrings(overview.States, func(state overview.State) sign {
			return sign{s.machineBlock(state), string(state), looks[state].hue}
		}))...)
	}
	if len(v.Balancers)+len(v.Federated) > 0 {
		m := s.symbols()
		lines = append(lines, s.legendLines([]sign{{m.full, "ready", green}, {m.part, "not ready", yellow}, {m.gap, "missing", red}})...)
	}
	return lines
}

func (s Style) legendLines(all []sign) []string {
	var lines []string
	line, columns := "", 0
	for _, one := range all {
		need := textWidth(one.mark) + 1 + textWidth(one.means)
		switch {
		case columns == 0:
		case columns+2+need > s.Width:
			lines, line, columns = append(lines, line), "", 0
		default:
			line, columns = line+"  ", columns+2
		}
		line += s.colorize(one.hue, one.mark) + s.colorize(dim, " "+one.means)
		columns += need
	}
	return append(lines, line)
}

// objectName returns the name of an object, with its namespace if more than one is shown.
func (s Style) objectName(namespace, name string) string {
	if s.Spaces {
		return namespace + "/" + name
	}
	return name
}

// shortNumber formats a number in at most five characters.
func shortNumber(n int) string {
	switch {
	case n < 100_000:
		return strconv.Itoa(n)
	case n < 10_000_000:
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n/1_000_000) + "M"
}

// widest returns the width of the widest text, at most the given maximum.
func widest(most int, texts ...string) int {
	n := 0
	for _, text := range texts {
		n = max(n, textWidth(text))
	}
	return min(n, most)
}

// mapStrings formats each element.
func mapStrings[T, S any](all []T, say func(T) S) []S {
	said := make([]S, 0, len(all))
	for _, one := range all {
		said = append(said, say(one))
	}
	return slices.Clip(said)
}

// mostTroubles is how many problems are shown, the worst first.
const mostTroubles = 20

// troubles describes the problems and what to do, or that there are none.
func (s Style) troubles(v overview.Overview) []string {
	switch {
	case len(v.Troubles) > 0:
	case len(v.Pools)+len(v.Reserves)+len(v.Balancers)+len(v.Federated)+len(v.Buffers)+len(v.Requests) == 0 && s.Spaces:
		return []string{"No objects found in any namespace."}
	case len(v.Pools)+len(v.Reserves)+len(v.Balancers)+len(v.Federated)+len(v.Buffers)+len(v.Requests) == 0:
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
