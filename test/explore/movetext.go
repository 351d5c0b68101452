// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

// String describes the world in one line.
func (w MoveWorld) String() string {
	var b strings.Builder
	for i := range zones {
		fmt.Fprintf(&b, "%s: %s", name(i), &w.zones[i])
		if w.shown[i] != w.zones[i] {
			fmt.Fprintf(&b, " (seen: %s)", &w.shown[i])
		}
		for k := range w.units[i] {
			if w.units[i][k].there || w.shownUnits[i][k].there {
				fmt.Fprintf(&b, " %s%d:%s", name(i), k+1, w.unitText(i, k))
			}
		}
		if t := w.troubles[i]; t.failures > 0 {
			fmt.Fprintf(&b, " failed %d times", t.failures)
		}
		if one := &w.writes[i]; one.pending {
			fmt.Fprintf(&b, " to write: %s", &one.to)
		}
		b.WriteString("; ")
	}
	return b.String() + fmt.Sprintf("owed=%d", w.owed)
}

func (w *MoveWorld) unitText(i, k int) string {
	u, seen := &w.units[i][k], &w.shownUnits[i][k]
	words := []string{phaseNames[u.phase]}
	add := func(condition bool, word string) {
		if condition {
			words = append(words, word)
		}
	}
	add(!u.there, "gone")
	add(u.marked, "reserve")
	add(u.pinned, "pinned")
	add(w.zones[i].names[k] == named, "named")
	add(w.zones[i].names[k] == due, "named, due")
	add(!seen.there, "unseen")
	add(seen.there && *u != *seen, "seen as "+phaseNames[seen.phase])
	return "[" + strings.Join(words, " ") + "]"
}

func (z *zone) String() string {
	text := fmt.Sprintf("replicas=%d", z.replicas)
	if z.held {
		text += fmt.Sprintf(" applied=%d", z.applied)
	}
	if z.shared {
		text += fmt.Sprintf(" share=%d", z.share)
	}
	if z.move.id > 0 {
		text += " " + z.move.String()
	}
	return text
}

func (h half) String() string {
	text := fmt.Sprintf("move%d", h.id)
	switch {
	case h.gives && h.machine > 0:
		return fmt.Sprintf("%s(gives %d with machine %d)", text, h.machines, h.machine)
	case h.gives:
		return fmt.Sprintf("%s(gives %d)", text, h.machines)
	case h.machines > 0:
		return fmt.Sprintf("%s(has taken %d)", text, h.machines)
	}
	return fmt.Sprintf("%s(takes, reserve %d)", text, h.reserve)
}
