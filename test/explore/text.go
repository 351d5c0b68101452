// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

var phaseNames = [...]string{"unmade", "pending", "running", "unknown", "failed", "terminating"}

func name(i int) string { return string(rune('a' + i)) }

// String describes the world in one line.
func (w World) String() string {
	var b strings.Builder
	add := func(condition bool, format string, args ...any) {
		if condition {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	fmt.Fprintf(&b, "replicas=%d X=%d A=%d", w.replicas, w.excess, w.record.excess)
	add(w.max > 0, "max=%d", w.max)
	add(w.record.excess > 0 && w.record.max != w.max, "(A was for max=%d)", w.record.max)
	add(w.unparsed, "bounds cannot be parsed")
	add(w.inclusive || w.record.counted > 0, "inclusive=%t counted=%d of %d", w.inclusive, w.record.counted, w.record.replicas)
	for s := range w.sets {
		set := &w.sets[s]
		add(set.there, "set%d=%d", s, set.asks)
		add(set.there && !set.latest(), "(seen: %d)", set.asksSeen)
		add(set.creating > 0, "creating %d", set.creating)
	}
	add(true, "seen=%d", w.deploymentSeen)
	add(w.template != w.templateSeen, "template %d (seen: %d)", w.template, w.templateSeen)
	for _, r := range w.resizes {
		add(r.pending, "resizing set%d to %d", r.set, r.asks)
	}
	add(w.plan.pending, "planned replicas=%d A=%d", w.plan.replicas, w.plan.record.excess)
	add(w.scaler.lowers, "the autoscaler lowers replicas to %d", w.scaler.to)
	for i := range w.machines {
		add(w.machines[i].there, "%s:%s", name(i), &w.machines[i])
	}
	return b.String()
}

func (m *machine) String() string {
	words := []string{phaseNames[m.phase]}
	add := func(condition bool, format string, args ...any) {
		if condition {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(m.set > 0, "set%d", m.set)
	add(m.failing, "failing")
	add(m.marked, "reserve")
	add(m.closed != m.marked, "node closed=%t", m.closed)
	add(m.busy, "busy")
	add(m.preserved, "preserved")
	add(m.named, "named")
	add(m.returned, "returned")
	add(true, "p%d", m.priority)
	add(!m.shown.there, "unseen")
	add(m.shown.there && !m.shown.latest, "seen as %s p%d", phaseNames[m.shown.phase], m.shown.priority)
	add(m.chosen, "to be deleted")
	add(m.change.hold, "to be held")
	add(m.change.free, "to be freed")
	add(m.change.priority > 0, "to be p%d", m.change.priority)
	return "[" + strings.Join(words, " ") + "]"
}
