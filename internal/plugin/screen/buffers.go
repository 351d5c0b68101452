// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
)

// buffers shows each CapacityBuffer in a line. Their namespaces are those of the target cluster, and
// are always shown.
func (s Style) buffers(v overview.Overview) []string {
	if len(v.Buffers) == 0 {
		return nil
	}
	all := make([]conditioned, len(v.Buffers))
	for i, b := range v.Buffers {
		all[i] = conditioned{b.Namespace + "/" + b.Name, bufferText(b), b.Ready}
	}
	return s.conditionLines("CAPACITY BUFFERS", all)
}

// conditioned is the line of an object with a condition Ready: its name, the reason and a text.
type conditioned struct {
	name, text string
	ready      overview.Condition
}

// conditionLines shows objects with a condition Ready, each in a line.
func (s Style) conditionLines(title string, all []conditioned) []string {
	lines := []string{s.colorize(bold, title)}
	columns := widest(s.Width/3, mapStrings(all, func(c conditioned) string { return c.name })...)
	states := widest(s.Width/4, mapStrings(all, conditioned.state)...)
	for _, c := range all {
		hue := yellow
		if c.ready.Status == "True" {
			hue = green
		}
		head := "  " + padRight(s.cutMiddle(c.name, columns), columns) + "  "
		state := padRight(s.keepHead(c.state(), states), states)
		lines = append(lines, strings.TrimRight(head+s.colorize(hue, state)+"  "+s.keepHead(c.text, s.Width-textWidth(head)-states-2), " "))
	}
	return lines
}

func (c conditioned) state() string { return cmp.Or(Sanitize(c.ready.Reason), "not seen yet") }

func bufferText(b overview.Buffer) string {
	text := "number of chunks unknown"
	if b.Chunks >= 0 {
		text = plural.Of(b.Chunks, "chunk")
	}
	if b.Shape != "" {
		text += " like " + Sanitize(b.Shape)
	}
	if b.Dedicated != "" {
		text += ", dedicated to " + Sanitize(b.Dedicated)
	}
	if b.Ready.Status == "False" && b.Ready.Message != "" {
		text += fmt.Sprintf(": %s", Sanitize(b.Ready.Message))
	}
	return text
}
