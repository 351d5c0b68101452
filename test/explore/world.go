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

// pair is an object as it is, and as the controller knows it: what its store shows, or what the API
// server answered to the last write.
type pair[T comparable] struct{ is, seen T }

func (p *pair[T]) show() { p.seen = p.is }

func (p *pair[T]) isSeen() bool { return p.seen == p.is }

// machine is a Machine.
type machine struct {
	there, failing bool
	phase          phase
	// set is the number of its MachineSet.
	set uint8
	// marked reports whether it has the mark, and later whether it got that after it was created.
	marked, later bool
	// first reports whether it has priority 1, and condemned whether it is marked for deletion.
	first, condemned, preserved bool
}

func (m *machine) leaving() bool { return m.phase == terminating }

// stays reports whether it exists and is not being deleted.
func (m *machine) stays() bool { return m.there && !m.leaving() }

// hasProviderID reports whether the machine has its provider id.
func (m *machine) hasProviderID() bool { return m.phase != unmade }

// unhealthy reports whether the machine no longer works.
func (m *machine) unhealthy() bool { return m.phase == unknown || m.phase == failed }

// host is the Node of a machine, with its pods. Before the Node exists, closed reports whether it
// will register with the taint.
type host struct{ there, closed, busy bool }

// slot is a machine with its Node. Earlier machines were created first.
type slot struct {
	machine pair[machine]
	host    pair[host]
	// unsure reports whether a request to delete the machine had no answer, and repeated whether one
	// to create it had none, so that its name is used again.
	unsure, repeated bool
}

// isFree reports whether nobody knows a machine here.
func (s *slot) isFree() bool { return !s.machine.is.there && !s.machine.seen.there }

// deployment is a MachineDeployment.
type deployment struct {
	replicas, excess uint8
	// max is the maximum number of machines; 0 is no maximum. unparsed reports whether the bounds
	// cannot be parsed.
	max      uint8
	unparsed bool
	// inclusive reports whether replicas are to include the reserve.
	inclusive bool
	record    record
	// template is the number of the MachineSet that the template belongs to.
	template uint8
	// named are the machines that are named for deletion, and due those that go whatever the replicas
	// are.
	named, due slotSet
}

// record is the annotation applied-excess.
type record struct{ excess, max, counted, replicas uint8 }

// slotSet is a set of slots.
type slotSet uint8

func (s slotSet) has(i int) bool { return s>>i&1 == 1 }

func (s *slotSet) add(i int) { *s |= 1 << i }

// remove closes the gap that a slot leaves.
func (s *slotSet) remove(i int) { *s = *s&(1<<i-1) | *s>>(i+1)<<i }

// machineSet is a MachineSet.
type machineSet struct {
	there bool
	// asks is how many machines it is to have. total is the number of machines of the
	// MachineDeployment for which that was decided, plus one; 0 means it is not recorded.
	asks, total uint8
}

// memory is what the controller remembers of the reserve from plan to plan. Times are distinguished
// only as far as plans do.
type memory struct {
	// known is false after a restart.
	known    bool
	surplus  moment
	failures uint8
	retry    moment
	left     uint8
	try      uint8
	// lowered is until when a client's reduction of replicas limits the reserve, and reductions how
	// often that happened. The others are what was requested then, if that could be read.
	lowered                         moment
	reductions                      uint8
	loweredTo, loweredX, loweredMax uint8
	loweredUnread                   bool
}

// moment is a time that a plan waits for.
type moment uint8

const (
	never moment = iota
	ahead
	passed
)

// World is one MachineDeployment, its MachineSets and their machines, with what the controller knows
// of them and is about to write.
type World struct {
	deployment pair[deployment]
	sets       [2]pair[machineSet]
	// unsure reports for which MachineSets a write had no answer.
	unsure   [2]bool
	machines [slots]slot
	// silent reports whether the target cluster does not respond.
	silent pair[bool]
	memory memory
	works  [3]work
	turns  [slots]direction
	scaler scaler
	// faults is how many more may happen.
	faults uint8
}

// scaler is an autoscaler that names machines in two steps: it lowers the priority of a machine,
// and then replicas, to the number that it computed before.
type scaler struct {
	lowers bool
	to     uint8
}

// settled returns a world at rest: machines that serve, the first of them busy, and more in
// reserve.
func settled(serving, excess, busy, limit int, inclusive bool) World {
	total := uint8(serving + excess)
	d := deployment{replicas: uint8(serving), excess: uint8(excess), max: uint8(limit), inclusive: inclusive}
	if excess > 0 {
		d.record = record{excess: uint8(excess), max: uint8(limit)}
	}
	if inclusive && excess > 0 {
		d.replicas, d.record.counted, d.record.replicas = total, uint8(excess), total
	}
	w := World{deployment: pair[deployment]{is: d}, memory: memory{known: true}}
	w.sets[0].is = machineSet{there: true, asks: total, total: total + 1}
	for i := range serving + excess {
		held := i >= serving
		w.machines[i].machine.is = machine{there: true, phase: running, marked: held}
		w.machines[i].host.is = host{there: true, closed: held, busy: i < busy}
	}
	w.showAll()
	return w
}

// showAll makes the controller know everything, as after it has listed it.
func (w *World) showAll() {
	w.deployment.show()
	w.silent.show()
	w.unsure, w.turns = [2]bool{}, [slots]direction{}
	for s := range w.sets {
		w.sets[s].show()
	}
	for i := range w.machines {
		s := &w.machines[i]
		s.machine.show()
		if s.unsure, s.repeated = false, false; w.silent.is {
			s.host.seen = host{}
		} else {
			s.showHost()
		}
	}
}

// showHost makes the store show the Node, if there is one, and its pods.
func (s *slot) showHost() {
	if s.host.show(); !s.host.is.there {
		s.host.seen = host{}
	}
}

// isHostSeen reports whether the store shows the Node and its pods.
func (s *slot) isHostSeen() bool { return s.host.isSeen() || !s.host.is.there && s.host.seen == host{} }

// maxReplicas returns the maximum number of machines; 0 if it is not known.
func (d *deployment) maxReplicas() int {
	if d.max == 0 || d.unparsed {
		return unlimited
	}
	return int(d.max)
}

const unlimited = 100

// excessWithin is what max leaves of the excess.
func (d *deployment) excessWithin() int {
	return max(0, min(int(d.excess), d.maxReplicas()-d.workload()))
}

// forget removes what no longer distinguishes worlds: machines that nobody knows, and a MachineSet
// that is empty and replaced.
func (w *World) forget() {
	for i := slots - 1; i >= 0; i-- {
		if s := &w.machines[i]; s.isFree() && *s != (slot{}) {
			w.removeSlot(i)
		}
	}
	for i := slots - 2; i >= 0; i-- { // close gaps
		if w.machines[i] == (slot{}) && w.machines[i+1] != (slot{}) {
			w.removeSlot(i)
		}
	}
	for who := range w.works {
		w.finish(who)
	}
	w.forgetSet()
}

func (w *World) removeSlot(i int) {
	copy(w.machines[i:], w.machines[i+1:])
	w.machines[slots-1] = slot{}
	copy(w.turns[i:], w.turns[i+1:])
	w.turns[slots-1] = unturned
	all := []*deployment{&w.deployment.is, &w.deployment.seen}
	for n := range w.works {
		work := &w.works[n]
		all = append(all, &work.next)
		copy(work.errands[i:], work.errands[i+1:])
		work.errands[slots-1] = errand{}
	}
	for _, d := range all {
		for _, s := range []*slotSet{&d.named, &d.due} {
			s.remove(i)
		}
	}
}

// forgetSet forgets an old MachineSet without machines.
func (w *World) forgetSet() {
	d, old := &w.deployment, 1-w.deployment.is.template
	one, other := &w.sets[old], &w.sets[1-old]
	if !d.isSeen() || w.works != [3]work{} || !one.is.there || one.is.asks > 0 || !one.isSeen() || !other.is.there || !other.isSeen() || w.unsure != [2]bool{} {
		return
	}
	for i := range w.machines {
		if m := &w.machines[i].machine; m.is.there && m.is.set == old || m.seen.there && m.seen.set == old {
			return
		}
	}
	if *one = (pair[machineSet]{}); old == 1 {
		return
	}
	w.sets[0], w.sets[1] = w.sets[1], w.sets[0]
	d.is.template, d.seen.template = 0, 0
	for i := range w.machines {
		w.machines[i].machine.is.set, w.machines[i].machine.seen.set = 0, 0
	}
}

// place returns where the next machine is: behind all others; below 0 if there is no place.
func (w *World) place() int {
	for i := slots - 1; i >= 0; i-- {
		if !w.machines[i].isFree() {
			return map[bool]int{true: i + 1, false: -1}[i+1 < slots]
		}
	}
	return 0
}

var phaseNames = [...]string{"unmade", "pending", "running", "unknown", "failed", "terminating"}

// String describes the world in one line.
func (w World) String() string {
	var b strings.Builder
	add := func(condition bool, format string, args ...any) {
		if condition {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(true, "%s", w.deployment.is)
	add(!w.deployment.isSeen(), "(seen: %s)", w.deployment.seen)
	for s := range w.sets {
		set := &w.sets[s]
		add(set.is.there, "set%d=%d", s, set.is.asks)
		add(!set.isSeen(), "(seen: %d)", set.seen.asks)
	}
	add(w.silent.is, "silent")
	add(w.memory.surplus != never || w.memory.failures > 0, "surplus=%d failures=%d until=%d", w.memory.surplus, w.memory.failures, w.memory.retry)
	add(w.scaler.lowers, "the autoscaler lowers replicas to %d", w.scaler.to)
	for i := range w.machines {
		if s := &w.machines[i]; !s.isFree() {
			add(true, "%s:%s", name(i), s)
		}
	}
	for who := range w.works {
		if own := &w.works[who]; *own != (work{}) {
			add(true, "| %s:%s", workerNames[who], own)
		}
	}
	return strings.TrimSpace(b.String())
}

func (d deployment) String() string {
	words := []string{fmt.Sprintf("replicas=%d X=%d A=%d", d.replicas, d.excess, d.record.excess)}
	add := func(condition bool, format string, args ...any) {
		if condition {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(d.max > 0, "max=%d", d.max)
	add(d.record.excess > 0 && d.record.max != d.max, "(A was for max=%d)", d.record.max)
	add(d.unparsed, "bounds cannot be parsed")
	add(d.inclusive || d.record.counted > 0, "inclusive=%t counted=%d of %d", d.inclusive, d.record.counted, d.record.replicas)
	add(d.template > 0, "template=%d", d.template)
	add(d.named > 0, "named=%s due=%s", d.named, d.due)
	return strings.Join(words, " ")
}

func (s slotSet) String() (text string) {
	for i := range slots {
		if s.has(i) {
			text += name(i)
		}
	}
	return text
}

func (s *slot) String() string {
	text := s.machine.is.String()
	if s.machine.seen != s.machine.is {
		text += " seen as " + s.machine.seen.String()
	}
	return "[" + text + s.host.is.String() + map[bool]string{false: " (seen:" + s.host.seen.String() + ")"}[s.isHostSeen()] + map[bool]string{true: " unsure"}[s.unsure] + "]"
}

func (m machine) String() string {
	if !m.there {
		return "nothing"
	}
	words := []string{phaseNames[m.phase]}
	add := func(condition bool, word string) {
		if condition {
			words = append(words, word)
		}
	}
	add(m.set > 0, setName(m.set))
	add(m.failing, "failing")
	add(m.marked, "reserve")
	add(m.marked && m.later, "later")
	add(m.preserved, "preserved")
	add(m.first, "first")
	add(m.condemned, "condemned")
	return strings.Join(words, " ")
}

func (h host) String() string {
	return map[bool]string{true: " node"}[h.there] + map[bool]string{true: " closed"}[h.closed] + map[bool]string{true: " busy"}[h.busy]
}

func (w *work) String() string {
	var b strings.Builder
	add := func(condition bool, format string, args ...any) {
		if condition {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(w.writes, "writes %s", w.next)
	for s, one := range w.sets {
		add(one.pending, "set%d=%d", s, one.to.asks)
		add(w.births[s] != births{}, "creates %d and %d in reserve", w.births[s].serve, w.births[s].reserve)
	}
	for i, e := range w.errands {
		add(e.node != noNode, "%s %s", [...]string{"", "opens", "closes"}[e.node], name(i))
		add(e.writes, "marks %s=%t", name(i), e.marked)
		add(e.goes != stays, "deletes %s", name(i))
		add(e.begun, "(%s has begun)", name(i))
		add(e.stale || e.staleNode, "(%s is outdated)", name(i))
	}
	add(w.stale, "(outdated)")
	add(w.failed, "(failed)")
	return b.String()
}
