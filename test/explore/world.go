// SPDX-License-Identifier: Apache-2.0

package explore

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

// machine is a Machine with its Node and its pods. Earlier machines were created first. Nothing
// else distinguishes them, so that two worlds with the same machines are one.
type machine struct {
	there, failing bool
	phase          phase
	// set is the number of its MachineSet.
	set uint8
	// marked reports whether the Machine is marked, closed whether its Node is; was reports whether
	// it was ever marked.
	marked, closed, was bool
	busy, preserved     bool
	priority            uint8
	// named reports whether the MachineDeployment names it for deletion, and due whether it is
	// deleted whatever the replicas are. condemned reports whether machine-controller-manager has
	// noted that in the Machine. returned reports whether its name is settled.
	named, due, condemned, returned bool
	shown                           shown
	// paid reports whether the applied excess has been reduced because it cannot be made.
	paid bool
	// chosen reports whether machine-controller-manager has decided to delete it, and excused
	// whether that was right at the time.
	chosen, excused bool
	change          change
}

// shown is what machine-controller-manager's stores show of a machine.
type shown struct {
	there, going bool
	// latest reports whether that is its latest version.
	latest               bool
	phase                phase
	priority             uint8
	condemned, preserved bool
	// named and due are what the MachineDeployment shows.
	named, due bool
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

func (m *machine) leaving() bool { return m.phase == terminating }

// inReserve reports whether the machine is in reserve: one that runs workload serves, whatever its
// mark.
func (m *machine) inReserve() bool { return m.marked && !m.busy }

// hasProviderID reports whether the machine has its provider id.
func (m *machine) hasProviderID() bool { return m.phase != unmade }

// unhealthy reports whether the machine no longer works.
func (m *machine) unhealthy() bool { return m.phase == unknown || m.phase == failed }

// newVersion records that the Machine has a new version.
func (m *machine) newVersion() {
	m.shown.latest = false
	m.change.outdated = m.change.pending
}

// updateStore makes the store show the machine.
func (m *machine) updateStore() {
	named, due := m.shown.named, m.shown.due
	m.shown = shown{there: true, latest: true, going: m.leaving(), phase: m.phase, priority: m.priority, condemned: m.condemned, preserved: m.preserved, named: named, due: due}
}

// machineSet is a MachineSet, and what machine-controller-manager's store shows of it.
type machineSet struct {
	there, seen bool
	// asks is how many machines it requests. total is the number of machines of the
	// MachineDeployment for which that was decided, plus one; 0 means it is not recorded.
	asks, total         uint8
	asksSeen, totalSeen uint8
	// creating is how many machines machine-controller-manager is about to create for it.
	creating uint8
}

// latest reports whether the store shows its latest version.
func (s *machineSet) latest() bool {
	return s.seen == s.there && s.asksSeen == s.asks && s.totalSeen == s.total
}

func (s *machineSet) updateStore() { s.seen, s.asksSeen, s.totalSeen = s.there, s.asks, s.total }

// resize is a write of a MachineSet that machine-controller-manager has decided and not yet done.
type resize struct {
	pending bool
	// fresh reports whether it creates the MachineSet.
	fresh            bool
	set, asks, total uint8
}

// memory is what the controller remembers from plan to plan. Times are distinguished only as far as
// plans do.
type memory struct {
	// known is false after a restart.
	known    bool
	surplus  moment
	failures uint8
	retry    moment
	try      uint8
	// lowered is until when a client's reduction of replicas limits the reserve, and reductions how
	// often that happened. The others are what was requested then, if that could be read.
	lowered                         moment
	reductions                      uint8
	loweredTo, loweredX, loweredMax uint8
	loweredUnread                   bool
}

// record is the annotation applied-excess.
type record struct {
	excess, max, counted, replicas uint8
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
	// replicas, record and returned are written at the end. asked is how many machines the
	// MachineSets requested when that was decided.
	replicas uint8
	record   record
	returned [slots]bool
	asked    uint8
	// frees reports whether machines are released, and returns whether replicas are restored: that
	// is written first.
	frees, returns, failed bool
	// stuck are the reserve machines that cannot be made.
	stuck [slots]bool
	// outdated reports whether the MachineDeployment has changed since.
	outdated bool
	memory   memory
}

// World is one MachineDeployment, its MachineSets and their machines, with what each actor has seen
// and is about to write.
type World struct {
	replicas, excess uint8
	// max is the maximum number of machines; 0 is no maximum. unparsed reports whether the bounds
	// cannot be parsed.
	max      uint8
	unparsed bool
	record   record
	// inclusive reports whether replicas are to include the reserve.
	inclusive bool
	machines  [slots]machine
	// template is the number of the MachineSet that the template belongs to.
	template uint8
	sets     [2]machineSet
	// deploymentSeen, with the numbers that replicas and the applied excess amount to, and
	// templateSeen are what machine-controller-manager's store shows.
	deploymentSeen, templateSeen uint8
	// resizes are what machine-controller-manager is about to write to MachineSets, in this order.
	resizes [2]resize
	// reduced reports whether the applied excess was reduced recently.
	reduced bool
	// lowest is the smallest number of machines for workload for which machine-controller-manager
	// may still be about to delete machines.
	lowest uint8
	memory memory
	plan   plan
	turns  turns
	// scaler is what an autoscaler is about to do.
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

// turns are in which direction the controller has decided to change the applied excess and, by
// machine, the mark, since the last fact: what a user, a pod, the cloud, time or
// machine-controller-manager's machines did.
type turns struct {
	excess direction
	mark   [slots]direction
}

// settled returns a world at rest: machines that serve, the first of them busy, and more in
// reserve.
func settled(serving, excess, busy, faults, limit int, inclusive bool) World {
	total := uint8(serving + excess)
	w := World{replicas: uint8(serving), excess: uint8(excess), max: uint8(limit), inclusive: inclusive, faults: uint8(faults), lowest: uint8(serving)}
	if excess > 0 {
		w.record = record{excess: uint8(excess), max: uint8(limit)}
	}
	if inclusive && excess > 0 {
		w.replicas, w.record.counted, w.record.replicas = total, uint8(excess), total
	}
	w.memory.known = true
	w.sets[0] = machineSet{there: true, asks: total, total: total + 1}
	w.sets[0].updateStore()
	w.deploymentSeen = total
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

// remove closes the gap that a machine leaves.
func (w *World) remove(i int) {
	copy(w.machines[i:], w.machines[i+1:])
	w.machines[slots-1] = machine{}
	for _, flags := range []*[slots]bool{&w.plan.returned, &w.plan.stuck} {
		copy(flags[i:], flags[i+1:])
		flags[slots-1] = false
	}
}

// rolling reports whether more than one MachineSet is in use.
func (w *World) rolling() bool {
	used := 0
	for s := range w.sets {
		if w.sets[s].asks > 0 || w.hasStaying(uint8(s)) {
			used++
		}
	}
	return used > 1
}

// hasStaying reports whether a MachineSet has machines that stay.
func (w *World) hasStaying(set uint8) bool {
	for i := range w.machines {
		if m := &w.machines[i]; m.there && m.set == set && !m.leaving() {
			return true
		}
	}
	return false
}

// requestedMachines is how many machines the MachineSets request.
func (w *World) requestedMachines() (n uint8) { return w.sets[0].asks + w.sets[1].asks }

// forget removes what no longer distinguishes worlds: a MachineSet that is empty and replaced, as
// machine-controller-manager does.
func (w *World) forget() {
	old := 1 - w.template
	switch s := &w.sets[old]; {
	case !s.there || s.asks > 0 || s.creating > 0 || !s.latest() || w.templateSeen != w.template || !w.sets[w.template].seen || w.resizes[0].pending:
		return
	}
	for i := range w.machines {
		if w.machines[i].there && w.machines[i].set == old {
			return
		}
	}
	w.sets[old] = machineSet{}
	if w.template == 0 {
		return
	}
	w.sets[0], w.sets[1], w.template, w.templateSeen = w.sets[1], machineSet{}, 0, 0
	for i := range w.machines {
		w.machines[i].set = 0
	}
}
