// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

const (
	// zones is the number of MachineDeployments in the search of moves, each in a zone of its own.
	zones = 2
	// zoneSlots is the maximum number of machines of each, including leaving ones.
	zoneSlots = 4
	// otherMachine is the number, in a half of a move, of a machine that no longer exists.
	otherMachine = zoneSlots + 1
)

// half is the half of a move that a MachineDeployment has. The other half, if there is one, is that
// of the other MachineDeployment.
type half struct {
	// id is the number of the move; 0 if there is none. Moves have no other names.
	id    uint8
	gives bool
	// machines is how many replicas it gives or has taken, reserve how many machines exist only for
	// the move, and machine the number of the machine that is moved, plus one; 0 if there is none.
	machines, reserve, machine uint8
}

// naming is how a MachineDeployment names a machine for deletion.
type naming uint8

const (
	unnamed naming = iota
	// named machines go first when there are too many.
	named
	// due machines go in any case.
	due
)

// zone is a MachineDeployment.
type zone struct {
	// applied are the replicas that machine-controller-manager may act on, if they are held.
	replicas, applied uint8
	held              bool
	// limit is the max of its bounds, and pool the excess of the pool.
	limit, pool uint8
	// share is its share of that, if it has one.
	shared bool
	share  uint8
	move   half
	// declined is the number of a move from which it takes nothing; 0 if there is none.
	declined uint8
	names    [zoneSlots]naming
}

// unit is a Machine with its Node and pods. Earlier machines were created first.
type unit struct {
	there bool
	phase phase
	// marked reports whether it is in reserve, and pinned whether it has a pod that must not be
	// evicted.
	marked, pinned bool
	// fresh reports whether it became ready after the controller noticed that others could not be
	// created.
	fresh bool
}

// serves reports whether workload can run on the machine.
func (u *unit) serves() bool { return u.there && u.phase == running && !u.marked }

func (u *unit) stays() bool { return u.there && u.phase != terminating }

// trouble is what the controller remembers about a MachineDeployment.
type trouble struct {
	failures uint8
	until    moment
	probing  bool
	paused   moment
}

// moveWrite is a write that has been decided and not yet done.
type moveWrite struct {
	pending bool
	// outdated reports whether the MachineDeployment has changed since.
	outdated bool
	to       zone
	// gone is the number of the machine that it names, plus one.
	gone uint8
}

// MoveWorld is two MachineDeployments with their machines, and what the balance controller has seen
// of them and is about to write.
type MoveWorld struct {
	zones [zones]zone
	units [zones][zoneSlots]unit
	// shown and shownUnits are what the controller's stores show: each of them shows everything as
	// it was at one time. latest reports whether that is the latest version, and awaited whether
	// the controller waits until the store shows its own write.
	shown           [zones]zone
	shownUnits      [zones][zoneSlots]unit
	latest, awaited [zones]bool
	troubles        [zones]trouble
	// overdue is when the deletion of machines that are named, and not due, is repeated.
	overdue [zones]moment
	writes  [zones]moveWrite
	// owed is how many replicas owners have asked for in total. slack is by how much they have
	// lowered a MachineDeployment while it gave replicas away, which may have been among those.
	owed, slack uint8
	// turned is in which direction a replica last moved with its machine, since the controller
	// learned the last fact: raised is to the second MachineDeployment. news reports whether there
	// are facts that the stores do not show yet.
	turned direction
	news   bool
	faults uint8
}

// settledZones returns a world at rest.
func settledZones(replicas, limits [zones]uint8, pool, faults uint8) MoveWorld {
	w := MoveWorld{faults: faults}
	for i, n := range replicas {
		z := zone{replicas: n, applied: n, held: true, limit: limits[i], pool: pool, shared: pool > 0}
		w.owed += n
		for k := range n {
			w.units[i][k] = unit{there: true, phase: running}
		}
		w.zones[i], w.latest[i] = z, true
	}
	if pool > 0 {
		i := 0
		if replicas[1] < replicas[0] {
			i = 1
		}
		w.zones[i].share = pool
		for k := range pool {
			w.units[i][replicas[i]+k] = unit{there: true, phase: running, marked: true}
		}
	}
	w.shown, w.shownUnits = w.zones, w.units
	return w
}

// promised returns a world in which the first MachineDeployment has promised a replica to the second
// one, whose max was then lowered.
func promised(faults uint8) MoveWorld {
	w := settledZones([zones]uint8{1, 1}, [zones]uint8{2, 1}, 0, faults)
	from := &w.zones[0]
	from.replicas, from.move = 2, half{id: 1, gives: true, machines: 1}
	w.owed++
	w.shown = w.zones
	return w
}

// change makes a new version of a MachineDeployment.
func (w *MoveWorld) change(i int, to zone) {
	if to == w.zones[i] {
		return
	}
	w.zones[i], w.latest[i] = to, false
	w.writes[i].outdated = w.writes[i].pending
}

// restart forgets all that is only in memory, and lists everything again.
func (w *MoveWorld) restart() {
	w.shown, w.shownUnits, w.troubles, w.writes = w.zones, w.units, [zones]trouble{}, [zones]moveWrite{}
	w.latest, w.awaited = [zones]bool{true, true}, [zones]bool{}
	w.noteUpdate()
}

// noteUpdate is called when a store has been updated.
func (w *MoveWorld) noteUpdate() {
	if w.news {
		w.turned, w.news = unturned, w.shown != w.zones || w.shownUnits != w.units
	}
}

// count returns how many machines stay that meet a condition.
func (w *MoveWorld) count(i int, is func(u *unit) bool) (n int) {
	for k := range w.units[i] {
		if u := &w.units[i][k]; u.stays() && w.zones[i].names[k] == unnamed && is(u) {
			n++
		}
	}
	return n
}

// forget removes what no longer distinguishes worlds: machines that are gone and seen as gone, the
// numbers of moves, and times that nothing waits for.
func (w *MoveWorld) forget() {
	for i := range zones {
		for k := zoneSlots - 1; k >= 0; k-- {
			if !w.units[i][k].there && !w.shownUnits[i][k].there {
				w.removeSlot(i, k)
			}
		}
		if w.zones[i].isNamed() {
			continue
		}
		w.overdue[i] = never
	}
	w.renumber()
}

func (z *zone) isNamed() bool {
	for _, n := range z.names {
		if n == named {
			return true
		}
	}
	return false
}

// removeSlot closes the gap that a machine leaves.
func (w *MoveWorld) removeSlot(i, k int) {
	copy(w.units[i][k:], w.units[i][k+1:])
	copy(w.shownUnits[i][k:], w.shownUnits[i][k+1:])
	w.units[i][zoneSlots-1], w.shownUnits[i][zoneSlots-1] = unit{}, unit{}
	for _, z := range []*zone{&w.zones[i], &w.shown[i], &w.writes[i].to} {
		copy(z.names[k:], z.names[k+1:])
		z.names[zoneSlots-1] = unnamed
		z.move.machine = withoutSlot(z.move.machine, k)
	}
	w.writes[i].gone = withoutSlot(w.writes[i].gone, k)
}

// withoutSlot returns the number of a machine, plus one, after another one has been removed.
func withoutSlot(machine uint8, k int) uint8 {
	switch at := int(machine) - 1; {
	case machine == 0 || machine == otherMachine || at < k:
		return machine
	case at == k:
		return otherMachine
	}
	return machine - 1
}

// numbers are those of all moves that a world knows.
func (w *MoveWorld) numbers() (all [6 * zones]*uint8) {
	for i, z := range [...]*zone{&w.zones[0], &w.zones[1], &w.shown[0], &w.shown[1], &w.writes[0].to, &w.writes[1].to} {
		all[2*i], all[2*i+1] = &z.move.id, &z.declined
	}
	return all
}

// renumber gives moves the smallest numbers, in the order in which they occur.
func (w *MoveWorld) renumber() {
	var numbers [16]uint8
	last := uint8(0)
	for _, id := range w.numbers() {
		if *id > 0 && numbers[*id] == 0 {
			last++
			numbers[*id] = last
		}
		*id = numbers[*id]
	}
}

// unused returns a number that no move has.
func (w *MoveWorld) unused() uint8 {
	last := uint8(0)
	for _, id := range w.numbers() {
		last = max(last, *id)
	}
	return last + 1
}

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
	if z.declined > 0 {
		text += fmt.Sprintf(" declined move%d", z.declined)
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
