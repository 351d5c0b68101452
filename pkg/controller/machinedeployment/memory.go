// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"maps"
	"slices"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// memory contains what neither the stores nor the answers of the API server show.
type memory struct {
	mu sync.Mutex
	// sets are by UID.
	sets map[types.UID]*setMemory
	// gone are machines that do not exist any more, until the store shows that.
	gone map[types.UID]*mcm.Machine
	// held are the MachineSets that a key decides about now.
	held map[types.UID]bool
	// deleting are machines for which a request to delete them is under way, and opened those that are
	// released, as long as their Nodes may be open while their Machines have the mark.
	deleting, opened map[types.UID]bool
	// nodes are the names of Nodes that may have been written, with a number that is another one each time.
	nodes  map[string]int
	doubts int
	// unclosable are the names of Nodes that the API server does not let have the taint of the reserve.
	unclosable map[string]bool
	// moving are machines that a key takes out of the reserve now.
	moving map[types.UID]bool
	// reported is when statuses were last written, by key; only what is less than numbersDelay ago counts.
	reported map[string]time.Time
	// strangers are Nodes that no Machine names, by UID, with the time at which that was seen first.
	strangers map[types.UID]time.Time
}

// numbersDelay is how long statuses stay before their numbers are written again. While machines boot and
// leave, that is one write in place of many.
const numbersDelay = time.Second

// setMemory belongs to a MachineSet.
type setMemory struct {
	// names are those of machines that may have been created. They are used again first, so that no
	// machine is created twice.
	names []string
	// unread are those among them of which nobody has looked yet whether they exist.
	unread []string
	// doubts are machines that may have been written or deleted.
	doubts []*mcm.Machine
	// unsure means that the MachineSet may have been written.
	unsure bool
}

func newMemory() *memory {
	return &memory{
		sets: map[types.UID]*setMemory{}, gone: map[types.UID]*mcm.Machine{}, held: map[types.UID]bool{}, deleting: map[types.UID]bool{}, opened: map[types.UID]bool{},
		nodes: map[string]int{}, unclosable: map[string]bool{}, moving: map[types.UID]bool{}, reported: map[string]time.Time{}, strangers: map[types.UID]time.Time{},
	}
}

// locked calls f with what is remembered of a MachineSet, and forgets it if nothing is left.
func (m *memory) locked(set types.UID, f func(*setMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.sets[set]
	if one == nil {
		one = &setMemory{}
	}
	f(one)
	if delete(m.sets, set); len(one.names)+len(one.unread)+len(one.doubts) > 0 || one.unsure {
		m.sets[set] = one
	}
}

// forgetSet forgets a MachineSet that does not exist any more.
func (m *memory) forgetSet(set types.UID) {
	m.locked(set, func(one *setMemory) { *one = setMemory{} })
}

// noteName remembers a machine that may have been created.
func (m *memory) noteName(set types.UID, name string) {
	m.locked(set, func(one *setMemory) { one.names, one.unread = append(one.names, name), append(one.unread, name) })
}

// noteUnread remembers a machine that may have been created, and could not be read.
func (m *memory) noteUnread(set types.UID, name string) {
	m.locked(set, func(one *setMemory) { one.unread = append(one.unread, name) })
}

// countUnread returns how many machines may have been created of which nobody has looked yet.
func (m *memory) countUnread(set types.UID) (n int) {
	m.locked(set, func(one *setMemory) { n = len(one.unread) })
	return n
}

// takeUnread removes and returns the names of machines that may have been created and are to be read.
func (m *memory) takeUnread(set types.UID) (names []string) {
	m.locked(set, func(one *setMemory) { names, one.unread = one.unread, nil })
	return names
}

// takeName removes and returns the name of a machine that may have been created; empty if there is
// none.
func (m *memory) takeName(set types.UID) (name string) {
	m.locked(set, func(one *setMemory) {
		if len(one.names) > 0 {
			name, one.names = one.names[0], one.names[1:]
		}
	})
	return name
}

// forgetNames forgets the names of machines that are known to exist.
func (m *memory) forgetNames(set types.UID, exists func(name string) bool) {
	m.locked(set, func(one *setMemory) {
		one.names, one.unread = slices.DeleteFunc(one.names, exists), slices.DeleteFunc(one.unread, exists)
	})
}

// noteDoubt remembers a machine that may have been written or deleted.
func (m *memory) noteDoubt(set types.UID, machine *mcm.Machine) {
	m.locked(set, func(one *setMemory) { one.doubts = append(one.doubts, machine) })
}

// doubtsAbout returns the machines that may have been written or deleted.
func (m *memory) doubtsAbout(set types.UID) (doubts []*mcm.Machine) {
	m.locked(set, func(one *setMemory) { doubts = slices.Clone(one.doubts) })
	return doubts
}

// forgetDoubt forgets once that a machine may have been written or deleted: it has been read. Until then,
// another key that looks at it reads it as well.
func (m *memory) forgetDoubt(set types.UID, machine *mcm.Machine) {
	m.locked(set, func(one *setMemory) {
		if i := slices.Index(one.doubts, machine); i >= 0 {
			one.doubts = slices.Delete(one.doubts, i, i+1)
		}
	})
}

// noteUnsure remembers a MachineSet that may have been written.
func (m *memory) noteUnsure(set types.UID) {
	m.locked(set, func(one *setMemory) { one.unsure = true })
}

// takeUnsure forgets and returns whether a MachineSet may have been written.
func (m *memory) takeUnsure(set types.UID) (unsure bool) {
	m.locked(set, func(one *setMemory) { unsure, one.unsure = one.unsure, false })
	return unsure
}

// noteGone remembers a machine that does not exist, and forgets those of which shown reports that
// nothing shows them any more.
func (m *memory) noteGone(machine *mcm.Machine, shown func(*mcm.Machine) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[machine.UID] = machine
	maps.DeleteFunc(m.gone, func(_ types.UID, one *mcm.Machine) bool { return !shown(one) })
}

// forgetGone forgets a machine that the store does not show any more.
func (m *memory) forgetGone(machine types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gone, machine)
}

func (m *memory) isGone(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[uid] != nil
}

// beginDeletion notes that a request to delete a machine is under way, unless its Node is being opened: pods
// may come.
func (m *memory) beginDeletion(machine types.UID) bool { return m.begin(m.deleting, m.opened, machine) }

// beginOpening notes that the Node of a machine is being opened, unless that is being deleted.
func (m *memory) beginOpening(machine types.UID) bool { return m.begin(m.opened, m.deleting, machine) }

// begin adds a machine to some, unless it is among others.
func (m *memory) begin(some, others map[types.UID]bool, machine types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if others[machine] {
		return false
	}
	some[machine] = true
	return true
}

// endDeletion and endOpening end what these have begun.
func (m *memory) endDeletion(machine types.UID) { m.end(m.deleting, machine) }
func (m *memory) endOpening(machine types.UID)  { m.end(m.opened, machine) }

func (m *memory) end(some map[types.UID]bool, machine types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(some, machine)
}

// noteNode remembers a Node that may have been written.
func (m *memory) noteNode(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubts++
	m.nodes[name] = m.doubts
}

// doubtOf returns the number of a Node that may have been written, 0 if it is known.
func (m *memory) doubtOf(node string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes[node]
}

// endDoubt forgets that a Node may have been written, unless that is so for another reason by now.
func (m *memory) endDoubt(node string, number int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[node] == number {
		delete(m.nodes, node)
	}
}

// forgetNode forgets what is remembered of a Node that does not exist any more.
func (m *memory) forgetNode(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.nodes, name)
	delete(m.unclosable, name)
}

// noteClosable remembers whether a Node can have the taint of the reserve.
func (m *memory) noteClosable(node string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.unclosable, node); !is {
		m.unclosable[node] = true
	}
}

// unclosableNodes returns the names of Nodes that cannot have the taint of the reserve.
func (m *memory) unclosableNodes() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.unclosable)
}

// beginMove reserves a machine for one key, which takes it out of the reserve, unless another one does that.
func (m *memory) beginMove(machine types.UID) (free bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	free = !m.moving[machine]
	m.moving[machine] = true
	return free
}

// endMove ends what beginMove has begun.
func (m *memory) endMove(machine types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.moving, machine)
}

// hold reserves MachineSets for one key, unless another one has reserved any of them.
func (m *memory) hold(sets []types.UID) (held []types.UID, free bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(sets, func(set types.UID) bool { return m.held[set] }) {
		return nil, false
	}
	for _, set := range sets {
		m.held[set] = true
	}
	return sets, true
}

// release ends what hold has begun, and forgets MachineSets that do not exist any more: at once, since
// another key may remember something of them from then on.
func (m *memory) release(sets, gone []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, set := range gone {
		delete(m.sets, set)
	}
	for _, set := range sets {
		delete(m.held, set)
	}
}

// noteReported remembers that statuses were written.
func (m *memory) noteReported(key string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reported[key] = now
	maps.DeleteFunc(m.reported, func(_ string, at time.Time) bool { return now.Sub(at) >= numbersDelay })
}

// reportIn returns how long numbers in statuses have to wait until they may be written again: not at all if
// the clock was set back meanwhile.
func (m *memory) reportIn(key string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since := now.Sub(m.reported[key]); since >= 0 && since < numbersDelay {
		return numbersDelay - since
	}
	return 0
}

// len returns how much is remembered.
func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sets) + len(m.gone) + len(m.held) + len(m.deleting) + len(m.opened) + len(m.nodes) + len(m.unclosable) + len(m.moving) + len(m.strangers)
}

// strangerFor returns for how long it has been known that no Machine names a Node.
func (m *memory) strangerFor(node types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.strangers[node]; !known {
		m.strangers[node] = now
	}
	return now.Sub(m.strangers[node])
}

// forgetStranger forgets a Node that does not exist any more.
func (m *memory) forgetStranger(node types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.strangers, node)
}
