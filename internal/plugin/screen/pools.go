// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// columns are the widths of the columns of the table of zones. All pools have the same ones, so
// that they are aligned.
type columns struct {
	name, zone, number, bounds, blocks int
}

// roomForBlocks is the minimum that names leave: enough for each state with its number.
const roomForBlocks = 22

func (s Style) columns(pools []overview.Pool) columns {
	c := columns{name: len("ZONE"), number: 3, bounds: len("BOUNDS")}
	for _, p := range pools {
		c.name = max(c.name, widest(s.Width, mapStrings(p.Zones, func(z overview.Zone) string { return z.Name })...))
		c.zone = max(c.zone, widest(s.Width, mapStrings(p.Zones, func(z overview.Zone) string { return z.Zone })...))
		c.bounds = max(c.bounds, widest(s.Width, mapStrings(p.Zones, boundsText)...))
		for _, z := range p.Zones {
			c.number = max(c.number, textWidth(shortNumber(z.Replicas)), textWidth(shortNumber(z.Excess)), textWidth(shortNumber(z.Applied)))
		}
	}
	if c.zone > 0 {
		c.zone = max(c.zone, len("ZONE"))
	}
	fixed := 2 + 2 + 2 + 3*(c.number+1) + 2 + c.bounds + 2
	room := max(s.Width-fixed-roomForBlocks, 12)
	if c.name+c.zone > room {
		c.zone = min(c.zone, max(room/2, room-c.name))
		c.name = min(c.name, room-c.zone)
	}
	c.blocks = s.Width - fixed - c.name - c.zone
	return c
}

func (s Style) poolLines(v overview.Overview) []string {
	c := s.columns(v.Pools)
	var lines []string
	for i, p := range v.Pools {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, s.poolHead(p), s.zoneHead(c))
		for _, z := range p.Zones {
			lines = append(lines, s.zoneLine(z, c))
		}
		if s.Wide {
			lines = append(lines, s.machines(v, p)...)
		}
	}
	return lines
}

// poolHead summarizes a pool.
func (s Style) poolHead(p overview.Pool) string {
	var total overview.Zone
	states := map[overview.State]int{}
	for _, z := range p.Zones {
		total.Replicas += z.Replicas
		total.Excess += z.Excess
		if z.Prepared != nil {
			total.Prepared = ptr.To(ptr.Deref(total.Prepared, 0) + *z.Prepared)
		}
		for state, n := range z.Count {
			states[state] += n
		}
	}
	facts := shortNumber(states[overview.Working]) + "/" + shortNumber(total.Replicas) + " serve"
	if total.Excess > 0 || states[overview.ReserveReady] > 0 {
		facts += ", " + shortNumber(states[overview.ReserveReady]) + "/" + shortNumber(total.Excess) + " reserve ready"
	}
	if total.Prepared != nil {
		facts += ", " + shortNumber(*total.Prepared) + " prepared"
	}
	if p.Excess != "" {
		facts += fmt.Sprintf(", excess %s", Sanitize(p.Excess))
	}
	if len(p.Zones) > 1 {
		facts += fmt.Sprintf(", skew %d", p.Skew)
	}
	name := s.objectName(p.Namespace, p.Name)
	facts = s.keepHead(facts, s.Width-8-min(textWidth(name), s.Width/4))
	name = s.keepTail(name, s.Width-textWidth(facts)-8)
	return s.colorize(bold, "POOL "+name) + "   " + facts
}

func (s Style) zoneHead(c columns) string {
	line := "  " + padRight("NAME", c.name)
	if c.zone > 0 {
		line += "  " + padRight("ZONE", c.zone)
	}
	for _, letter := range []string{"R", "X", "A"} {
		line += padLeft(letter, c.number+1)
	}
	return s.colorize(dim, line+"  "+padRight("BOUNDS", c.bounds)+"  MACHINES")
}

func (s Style) zoneLine(z overview.Zone, c columns) string {
	line := "  " + padRight(s.keepTail(z.Name, c.name), c.name)
	if c.zone > 0 {
		line += "  " + padRight(s.keepTail(z.Zone, c.zone), c.zone)
	}
	for _, n := range []int{z.Replicas, z.Excess, z.Applied} {
		line += padLeft(shortNumber(n), c.number+1)
	}
	return strings.TrimRight(line+"  "+padRight(boundsText(z), c.bounds)+"  "+s.blocks(z, c.blocks), " ")
}

func boundsText(z overview.Zone) string {
	if z.Bounds == nil {
		return "-"
	}
	return shortNumber(z.Bounds.Min) + ":" + shortNumber(z.Bounds.Max)
}

// blocks returns one block for each machine, or, if they do not fit, one for each state with its
// number.
func (s Style) blocks(z overview.Zone, room int) string {
	var each []string
	columns := -1
	for _, state := range overview.States {
		if n := z.Count[state]; n > 0 {
			columns += n + 1
			if columns > room {
				return s.grouped(z, room)
			}
			each = append(each, s.colorize(looks[state].hue, strings.Repeat(s.machineBlock(state), n)))
		}
	}
	return strings.Join(each, " ")
}

// grouped returns as many states with their numbers as fit.
func (s Style) grouped(z overview.Zone, room int) string {
	var groups []string
	columns := -1
	for _, state := range overview.States {
		if n := z.Count[state]; n > 0 {
			number := shortNumber(n)
			if columns += textWidth(number) + 2; columns > room {
				return strings.Join(groups, " ") + s.symbols().dots
			}
			groups = append(groups, s.colorize(looks[state].hue, s.machineBlock(state))+number)
		}
	}
	return strings.Join(groups, " ")
}

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
			if rest, note := s.Width-textWidth(line)-2, noteOn(m); note != "" && rest > 8 {
				line += "  " + s.keepHead(note, rest)
			}
			lines = append(lines, s.colorize(stateHue(m), line))
		}
	}
	return lines
}

// noteOn is what stands beside a machine: a problem, or how far its images are.
func noteOn(m overview.Machine) string {
	if m.Why == "" && m.Images != "" {
		return "images: " + m.Images
	}
	return m.Why
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
