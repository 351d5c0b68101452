// SPDX-License-Identifier: Apache-2.0

package screen

import (
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
	for _, section := range [][]string{s.poolLines(v), s.reserves(v), s.balancers(v), s.federated(v), s.buffers(v), s.troubles(v), s.missing(v), s.legend(v)} {
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
