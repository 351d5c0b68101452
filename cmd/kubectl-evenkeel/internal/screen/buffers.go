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
	lines := []string{s.colorize(bold, "CAPACITY BUFFERS")}
	columns, states := widest(s.Width/3, mapStrings(v.Buffers, bufferName)...), widest(s.Width/4, mapStrings(v.Buffers, bufferState)...)
	for _, b := range v.Buffers {
		hue, text := yellow, bufferText(b)
		if b.Ready.Status == "True" {
			hue = green
		}
		head := "  " + padRight(s.cutMiddle(bufferName(b), columns), columns) + "  "
		state := padRight(s.keepHead(bufferState(b), states), states)
		lines = append(lines, strings.TrimRight(head+s.colorize(hue, state)+"  "+s.keepHead(text, s.Width-textWidth(head)-states-2), " "))
	}
	return lines
}

func bufferName(b overview.Buffer) string { return b.Namespace + "/" + b.Name }

func bufferState(b overview.Buffer) string { return cmp.Or(sanitize(b.Ready.Reason), "not seen yet") }

func bufferText(b overview.Buffer) string {
	text := "number of chunks unknown"
	if b.Chunks >= 0 {
		text = plural.Of(b.Chunks, "chunk")
	}
	if b.Shape != "" {
		text += " like " + sanitize(b.Shape)
	}
	if b.Dedicated != "" {
		text += ", dedicated to " + sanitize(b.Dedicated)
	}
	if b.Ready.Status == "False" && b.Ready.Message != "" {
		text += fmt.Sprintf(": %s", sanitize(b.Ready.Message))
	}
	return text
}
