// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

// slots is how many machines a world holds at most, those that leave included.
const slots = 5

// phase is that of a Machine.
type phase uint8

const (
	unmade phase = iota
	pending
	running
	unknown
	failed
	terminating
)

var phaseNames = [...]string{"unmade", "pending", "running", "unknown", "failed", "terminating"}

// shown is what machine-controller-manager's store shows of a machine.
type shown struct {
	there, going bool
	// latest reports whether that is its latest version.
	latest   bool
	phase    phase
	priority uint8
}

// change is a write of a machine that has been decided and not been made yet.
type change struct {
	pending, hold, free bool
	priority            uint8
	// begun reports whether the first of its two writes has been made: that of the Node, or of the Machine.
	begun bool
	// outdated reports whether the machine has changed since.
	outdated bool
}

// machine is a Machine with its Node and its pods. It is the one that was created before those after it.
type machine struct {
	there, failing bool
	phase          phase
	// marked is the mark of the Machine, closed that of its Node; was reports whether it was ever marked.
	marked, closed, was bool
	busy                bool
	priority            uint8
	shown               shown
	// chosen reports whether machine-controller-manager has decided to delete it, and excused whether that was right then.
	chosen, excused bool
	change          change
}

func (m *machine) leaving() bool { return m.phase == terminating }

// made reports whether the machine has its provider id.
func (m *machine) made() bool { return m.phase != unmade }

// touch notes that the Machine has a new version.
func (m *machine) touch() {
	m.shown.latest = false
	m.change.outdated = m.change.pending
}

// memory is what the controller remembers from plan to plan. Times are only told apart as far as plans do.
type memory struct {
	surplus  moment
	failures uint8
	retry    moment
	try      uint8
}

// moment is a time that a plan waits for.
type moment uint8

const (
	never moment = iota
	ahead
	passed
)

// plan is one that is being carried out.
type plan struct {
	pending bool
	// applied is the excess that is to be applied in the end, and asked what the MachineSet asked for when that was decided.
	applied, asked uint8
	frees, failed  bool
	// outdated reports whether the MachineDeployment has changed since.
	outdated bool
	memory   memory
}

// World is one MachineDeployment, its one MachineSet and their machines, with what each party has seen and is about to write.
type World struct {
	replicas, excess, applied uint8
	machines                  [slots]machine
	// asks is how many machines the MachineSet asks for.
	asks uint8
	// deploymentShown, with the number that replicas and the excess applied come to, and asksShown are what machine-controller-manager's
	// store shows.
	deploymentShown, asksShown uint8
	// resizing is what machine-controller-manager is about to write to the MachineSet, plus one; 0 is nothing.
	resizing uint8
	// creating is how many machines it is about to create.
	creating uint8
	// reduced reports whether the excess applied has fallen lately.
	reduced bool
	// lowest is the smallest number of replicas for which machine-controller-manager may still be about to delete.
	lowest uint8
	memory memory
	plan   plan
	// faults is how many more may happen.
	faults uint8
}

// settled returns a world at rest: machines that serve, the first of them busy, and more in reserve.
func settled(replicas, excess, busy, faults int) World {
	w := World{replicas: uint8(replicas), excess: uint8(excess), applied: uint8(excess), faults: uint8(faults), lowest: uint8(replicas)}
	w.asks = w.replicas + w.excess
	w.deploymentShown, w.asksShown = w.asks, w.asks
	for i := range replicas + excess {
		m := machine{there: true, phase: running, priority: 3, busy: i < busy}
		if i >= replicas {
			m.marked, m.closed, m.was, m.priority = true, true, true, 5
		}
		m.show()
		w.machines[i] = m
	}
	return w
}

// show has the store catch up with a machine.
func (m *machine) show() {
	m.shown = shown{there: true, latest: true, going: m.leaving(), phase: m.phase, priority: m.priority}
}

// String says what the world is like, in one line.
func (w World) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "R=%d X=%d A=%d set=%d", w.replicas, w.excess, w.applied, w.asks)
	if w.deploymentShown != w.replicas+w.applied || w.asksShown != w.asks {
		fmt.Fprintf(&b, " (seen: %d, set=%d)", w.deploymentShown, w.asksShown)
	}
	if w.resizing > 0 {
		fmt.Fprintf(&b, " resizing to %d", w.resizing-1)
	}
	if w.creating > 0 {
		fmt.Fprintf(&b, " creating %d", w.creating)
	}
	if w.plan.pending {
		fmt.Fprintf(&b, " planned A=%d", w.plan.applied)
	}
	for i := range w.machines {
		if m := &w.machines[i]; m.there {
			fmt.Fprintf(&b, " %s:%s", name(i), m)
		}
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
	add(m.failing, "failing")
	add(m.marked, "reserve")
	add(m.closed != m.marked, "node closed=%t", m.closed)
	add(m.busy, "busy")
	add(true, "p%d", m.priority)
	add(!m.shown.there, "unseen")
	add(m.shown.there && !m.shown.latest, "seen as %s p%d", phaseNames[m.shown.phase], m.shown.priority)
	add(m.chosen, "to be deleted")
	add(m.change.hold, "to be held")
	add(m.change.free, "to be freed")
	add(m.change.priority > 0, "to be p%d", m.change.priority)
	return "[" + strings.Join(words, " ") + "]"
}

func name(i int) string { return string(rune('a' + i)) }
