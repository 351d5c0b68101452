// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// misplanned returns the law of package reserve that a decision breaks. It judges the decision by the
// world in which it is made: the laws have to hold even where guards would prevent the harm.
func (w *World) misplanned(d *decision) string {
	next := *w
	next.replicas, next.record = d.replicas, d.record
	if d.invalid != "" {
		return "I6: The plan records an excess that cannot be parsed: " + d.invalid
	}
	return cmp.Or(w.misgated(&next), w.misgrown(&next, d), w.misnamed(&next, d), w.mislowered(&next), w.mismarked(&next, d), w.misread(&next, d))
}

// requested is how many machines are requested after a plan has settled what users did to replicas,
// while the excess is still the old one.
func (w *World) requested(next *World) int {
	limit := pool.Unbounded
	if w.record.max > 0 {
		limit = int(w.record.max)
	}
	counted := max(0, int(w.replicas)-next.workload())
	return pool.VisibleReplicas(next.workload(), pool.Applied{Excess: int(w.record.excess), Max: limit, Counted: counted})
}

// counted returns the machines that machine-controller-manager counts.
func (w *World) counted() (present []int) {
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.phase != terminating {
			present = append(present, i)
		}
	}
	return present
}

// going reports whether the machine is being deleted or named for deletion.
func (m *machine) going() bool { return m.leaving() || m.named || m.condemned }

// creatable is how many machines there may be if MachineSets request this many: the guard of creations
// refuses those beyond the maximum, unless workload needs them.
func (w *World) creatable(asks int) int {
	if w.workload() > w.maxReplicas() {
		return asks
	}
	return min(asks, w.maxReplicas()+w.count().leaving)
}

// misgated is law 6: when the excess falls, machine-controller-manager deletes victims and reserve
// machines for it, in its own order, and its store shows everything. Where the store shows machines
// that are still to be made, it may be late to show which of them cannot be made: the guard of
// deletions prevents that another one goes.
func (w *World) misgated(next *World) string {
	n := int(next.visible())
	if n >= w.requested(next) || w.sets[0].there && w.sets[1].there {
		return ""
	}
	asks := 0
	for s := range w.sets {
		asks += int(max(w.sets[s].asks, w.sets[s].asksSeen))
	}
	for i := range w.machines {
		if m := &w.machines[i]; m.there && (!m.shown.there || m.shown.going != m.leaving()) {
			return fmt.Sprintf("L6: The excess falls to %d before machine-controller-manager sees %s.", next.record.excess, name(i))
		}
	}
	order := deletedFirst(w.withNames(), w.counted())
	fewer := max(0, max(len(order), w.creatable(asks))-n)
	for _, i := range order[:min(fewer, len(order))] {
		if m := &w.machines[i]; !m.going() && !m.marked && m.shown.phase != unmade && m.shown.priority > reserve.PriorityVictim {
			return fmt.Sprintf("L6: The excess falls to %d, and machine-controller-manager would delete %s, which serves.", next.record.excess, name(i))
		}
	}
	return ""
}

// withNames returns the world as machine-controller-manager sees it once it acts on fewer replicas:
// it has given the machines that are named with them the lowest priority by then.
func (w *World) withNames() *World {
	seen := *w
	for i := range seen.machines {
		if m := &seen.machines[i]; m.named {
			m.shown.condemned, m.shown.priority = true, 1
		}
	}
	return &seen
}

// misgrown is laws 5 and 8: patience does not run while a machine is leaving, and a larger excess
// has room within max beside all machines.
func (w *World) misgrown(next *World, d *decision) string {
	leaving := w.countIf((*machine).going)
	live := w.countIf(func(*machine) bool { return true }) - leaving
	switch {
	case d.memory.surplus != never && leaving > 0:
		return "L5: Patience with the surplus runs while a machine is leaving."
	case d.record.excess > w.record.excess && d.record.max > 0 && int(next.visible()) > max(live, int(d.record.max)-leaving):
		return fmt.Sprintf("L8: The excess grows to %d: with %d machines that are leaving, that is more than max %d.", d.record.excess, leaving, d.record.max)
	}
	return ""
}

// misnamed is law 12: R rises once for each reserve machine that was named.
func (w *World) misnamed(next *World, d *decision) string {
	named := 0
	for i := range w.machines {
		switch m := &w.machines[i]; {
		case m.there && m.returned && !d.returned[i]:
			return fmt.Sprintf("L12: The plan forgets that %s has been settled.", name(i))
		case m.there && d.returned[i] && !m.returned:
			named++
		}
	}
	if by := next.workload() - w.workload(); by > named {
		return fmt.Sprintf("L12: R rises by %d for %d reserve machines that were named.", by, named)
	}
	return ""
}

// mislowered is law 17: after a reduction of replicas, R falls only as far as machines that serve are
// gone, and the reserve takes the rest.
func (w *World) mislowered(next *World) string {
	serving := w.countIf(func(m *machine) bool { return !m.inReserve() && !m.going() })
	switch by := next.workload() - w.workload(); {
	case by < 0 && next.workload() < serving:
		return fmt.Sprintf("L17: R falls to %d, and %d machines serve or may recover.", next.workload(), serving)
	case by == 0 && w.record.counted > 0 && w.replicas < w.record.replicas && next.replicas > w.replicas:
		return fmt.Sprintf("L17: A client has lowered replicas to %d, and they are to be %d again.", w.replicas, next.replicas)
	}
	return ""
}

// mismarked is laws 4 and 9: no machine is put into reserve while machine-controller-manager has
// machines to delete, and no victim is taken back, unless it serves and is needed: its deletion is
// refused.
func (w *World) mismarked(next *World, d *decision) string {
	present, visible, asks := len(w.counted()), w.requested(next), 0
	serving := w.countIf(func(m *machine) bool { return !m.inReserve() && !m.going() && !m.unhealthy() })
	for s := range w.sets {
		asks += int(w.sets[s].asksSeen)
	}
	for i, c := range d.changes {
		m := &w.machines[i]
		victim := m.priority == reserve.PriorityVictim && min(asks, max(visible, int(next.visible()))) < present
		switch {
		case c.hold && !m.marked && present > visible:
			return fmt.Sprintf("L4: %s is put into reserve while machine-controller-manager has %d machines to delete.", name(i), present-visible)
		case victim && c.free && !m.busy:
			return fmt.Sprintf("L9: %s is released, and machine-controller-manager may be about to delete it.", name(i))
		case victim && c.priority > reserve.PriorityVictim && (m.inReserve() || w.rolling() || serving > next.workload()):
			return fmt.Sprintf("L9: %s gets priority %d, and machine-controller-manager may be about to delete it.", name(i), c.priority)
		}
	}
	return ""
}

// misread is invariant 6: settings that cannot be parsed change nothing. What a client reduced before
// counts as max.
func (w *World) misread(next *World, d *decision) string {
	if w.unparsed && d.memory.lowered == never && next.record.excess > 0 && next.record.max != w.record.max {
		return fmt.Sprintf("I6: The bounds cannot be parsed, and the max that is recorded changes to %d.", next.record.max)
	}
	return ""
}

// misrested is law 10, for a decision that changes nothing: once everything else is done, the excess
// has fallen by the machines that cannot be made.
func (w *World) misrested() string {
	busy := func(m *machine) bool {
		return !m.shown.latest || m.going() || m.unhealthy() || m.chosen || m.priority == 1 || m.preserved
	}
	present, asks := len(w.counted()), int(w.sets[0].asks+w.sets[1].asks)
	switch {
	case w.countIf(busy) > 0 || w.rolling() || w.resizes[0].pending || present != int(w.visible()) || present != asks:
		return ""
	case w.memory.retry == ahead || w.countIf(func(m *machine) bool { return !m.inReserve() }) > w.workload():
		return ""
	case w.record.excess > 0 && w.countIf(func(m *machine) bool { return m.failing && m.marked }) > 0:
		return fmt.Sprintf("L10: A machine in reserve cannot be made, and the excess stays at %d.", w.record.excess)
	}
	return ""
}

// misborn is law 1: a new machine serves only if fewer than R others could.
func (w *World) misborn(m *machine) string {
	able := w.countIf(func(m *machine) bool {
		return !m.going() && !m.unhealthy() && !(m.inReserve() && m.priority <= reserve.PriorityVictim)
	})
	switch {
	case w.record.excess == 0 || m.marked != (able < w.workload()):
		return ""
	case m.marked:
		return fmt.Sprintf("L1: A machine is in reserve when it is created, though only %d of %d could serve.", able, w.workload())
	}
	return fmt.Sprintf("L1: A machine serves when it is created, though %d could serve of %d.", able, w.workload())
}

// countIf counts the machines that meet a condition.
func (w *World) countIf(is func(m *machine) bool) (n int) {
	for i := range w.machines {
		if m := &w.machines[i]; m.there && is(m) {
			n++
		}
	}
	return n
}
