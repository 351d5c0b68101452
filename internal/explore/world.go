// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

// slots is the maximum number of machines in a world, including leaving ones.
const slots = 5

// phase is the phase of a Machine.
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

// change is a write of a machine that has been decided and not yet done.
type change struct {
	pending, hold, free bool
	priority            uint8
	// begun reports whether the first of its two writes has been done: that of the Node, or of the
	// Machine.
	begun bool
	// outdated reports whether the machine has changed since.
	outdated bool
}

// machine is a Machine with its Node and its pods. Earlier machines were created first.
type machine struct {
	there, failing bool
	phase          phase
	// marked reports whether the Machine is marked, closed whether its Node is; was reports whether
	// it was ever marked.
	marked, closed, was bool
	busy                bool
	priority            uint8
	shown               shown
	// chosen reports whether machine-controller-manager has decided to delete it, and excused
	// whether that was right at the time.
	chosen, excused bool
	change          change
}

func (m *machine) leaving() bool { return m.phase == terminating }

// hasProviderID reports whether the machine has its provider id.
func (m *machine) hasProviderID() bool { return m.phase != unmade }

// newVersion records that the Machine has a new version.
func (m *machine) newVersion() {
	m.shown.latest = false
	m.change.outdated = m.change.pending
}

// memory is what the controller remembers from plan to plan. Times are distinguished only as far as
// plans do.
type memory struct {
	surplus  moment
	failures uint8
	retry    moment
	try      uint8
	// lowered is until when a client's reduction of replicas limits the reserve, and reductions how
	// often that happened.
	lowered    moment
	reductions uint8
}

// record is the annotation applied-excess.
type record struct {
	excess, counted, replicas uint8
}

// moment is a time that a plan waits for.
type moment uint8

const (
	never moment = iota
	ahead
	passed
)

// plan is a plan that is being carried out.
type plan struct {
	pending bool
	// replicas and record are written at the end. asked is how many machines the MachineSet
	// requested when that was decided.
	replicas      uint8
	record        record
	asked         uint8
	frees, failed bool
	// outdated reports whether the MachineDeployment has changed since.
	outdated bool
	memory   memory
}

// World is one MachineDeployment, its one MachineSet and their machines, with what each actor has
// seen and is about to write.
type World struct {
	replicas, excess uint8
	record           record
	// inclusive reports whether replicas are to include the reserve.
	inclusive bool
	machines  [slots]machine
	// asks is how many machines the MachineSet requests.
	asks uint8
	// deploymentShown, with the numbers that replicas and the applied excess amount to, and
	// asksShown are what machine-controller-manager's store shows.
	deploymentShown, asksShown uint8
	// resizing is what machine-controller-manager is about to write to the MachineSet, plus one; 0
	// means nothing.
	resizing uint8
	// creating is how many machines it is about to create.
	creating uint8
	// reduced reports whether the applied excess was reduced recently.
	reduced bool
	// lowest is the smallest number of machines for workload for which machine-controller-manager
	// may still be about to delete machines.
	lowest uint8
	memory memory
	plan   plan
	// faults is how many more may happen.
	faults uint8
}

// settled returns a world at rest: machines that serve, the first of them busy, and more in reserve.
func settled(serving, excess, busy, faults int, inclusive bool) World {
	w := World{replicas: uint8(serving), excess: uint8(excess), record: record{excess: uint8(excess)}, inclusive: inclusive, faults: uint8(faults), lowest: uint8(serving)}
	w.asks = uint8(serving + excess)
	if inclusive && excess > 0 {
		w.replicas = w.asks
		w.record.counted, w.record.replicas = uint8(excess), w.asks
	}
	w.deploymentShown, w.asksShown = w.asks, w.asks
	for i := range serving + excess {
		m := machine{there: true, phase: running, priority: 3, busy: i < busy}
		if i >= serving {
			m.marked, m.closed, m.was, m.priority = true, true, true, 5
		}
		m.updateStore()
		w.machines[i] = m
	}
	return w
}

// updateStore makes the store show the machine.
func (m *machine) updateStore() {
	m.shown = shown{there: true, latest: true, going: m.leaving(), phase: m.phase, priority: m.priority}
}

// String describes the world in one line.
func (w World) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replicas=%d X=%d A=%d", w.replicas, w.excess, w.record.excess)
	if w.inclusive || w.record.counted > 0 {
		fmt.Fprintf(&b, " inclusive=%t counted=%d of %d", w.inclusive, w.record.counted, w.record.replicas)
	}
	fmt.Fprintf(&b, " set=%d", w.asks)
	if w.deploymentShown != w.asks || w.asksShown != w.asks {
		fmt.Fprintf(&b, " (seen: %d, set=%d)", w.deploymentShown, w.asksShown)
	}
	if w.resizing > 0 {
		fmt.Fprintf(&b, " resizing to %d", w.resizing-1)
	}
	if w.creating > 0 {
		fmt.Fprintf(&b, " creating %d", w.creating)
	}
	if w.plan.pending {
		fmt.Fprintf(&b, " planned replicas=%d A=%d", w.plan.replicas, w.plan.record.excess)
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
