// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

// What a machine runs, beside pods of the groups 1 and 2.
const (
	nothing  = 0
	stranger = 9
)

// gangCell is a Machine with its Node and at most one pod, which fills it.
type gangCell struct {
	there, marked, ready bool
	// runs is the group of its pod.
	runs uint8
	// pending reports whether the store shows its pod as one that waits.
	pending bool
	// shown is what the stores of package release show.
	shown struct {
		there, marked, ready bool
		runs                 uint8
	}
}

// isLatest reports whether the stores show the latest Machine. Pods have a store of their own.
func (c *gangCell) isLatest() bool {
	return c.shown.there == c.there && c.shown.marked == c.marked && c.shown.ready == c.ready
}

func (c *gangCell) updateStore() {
	c.shown.there, c.shown.marked, c.shown.ready = c.there, c.marked, c.ready
}

func (c *gangCell) updatePod() { c.shown.runs, c.pending = c.runs, false }

// showsPod reports whether the store shows the latest pod, and no longer as one that waits.
func (c *gangCell) showsPod() bool { return c.shown.runs == c.runs && !c.pending }

func (c *gangCell) isFree() bool { return c.there && c.ready && !c.marked && c.runs == nothing }

// gangGroup is a group of pods.
type gangGroup struct {
	// waiting are its pods without a machine; unseen are those of them that package release does not
	// know, and gone are deleted pods that it still knows.
	waiting, unseen, gone uint8
	// behind is what the store still has to show before these pods, because it shows pods in order:
	// changes of pods on machines, and deletions of waiting pods of groups.
	behind uint16
	// exists reports whether there is a PodGroup, and known whether package release knows it.
	exists, known bool
}

// GangWorld is a MachineDeployment with machines, and two groups of pods that each need one of them.
type GangWorld struct {
	replicas uint8
	cells    [raiseSlots]gangCell
	groups   [2]gangGroup
	// room is how many machines may be free at rest: those that pods have left, those that somebody
	// else added, and those that were released for one group while the scheduler started the other.
	room uint8
	// shown are the replicas that the store shows, and known those that release knows from answers to
	// its writes, if they are more.
	shown, known uint8
	raising      raising
	faults       uint8
}

// newest is what release knows of the replicas, which only rise here.
func (w *GangWorld) newest() uint8 { return max(w.shown, w.known) }

// count counts the machines that meet a condition.
func (w *GangWorld) count(is func(c *gangCell) bool) (n int) {
	for i := range w.cells {
		if c := &w.cells[i]; c.there && is(c) {
			n++
		}
	}
	return n
}

func (w *GangWorld) free() int { return w.count((*gangCell).isFree) }

// shownWaiting is how many pods of a group package release believes to wait.
func (w *GangWorld) shownWaiting(g int) uint8 {
	pending := w.count(func(c *gangCell) bool { return c.pending && c.runs == uint8(1+g) })
	return w.groups[g].waiting - w.groups[g].unseen + w.groups[g].gone + uint8(pending)
}

// updatePod shows the pod of a machine.
func (w *GangWorld) updatePod(i int) {
	w.cells[i].updatePod()
	for g := range w.groups {
		w.groups[g].behind &^= 1 << i
	}
}

// forgetPod shows that a pod of a group is gone.
func (w *GangWorld) forgetPod(g int) {
	if w.groups[g].gone--; w.groups[g].gone > 0 {
		return
	}
	for other := range w.groups {
		w.groups[other].behind &^= 1 << (raiseSlots + g)
	}
}

// before returns what the store shows before pods that come now.
func (w *GangWorld) before() (all uint16) {
	for i := range w.cells {
		if !w.cells[i].showsPod() {
			all |= 1 << i
		}
	}
	for g, group := range w.groups {
		if group.gone > 0 {
			all |= 1 << (raiseSlots + g)
		}
	}
	return all
}

// bindPod binds a waiting pod of a group, one that release knows if there is one.
func (w *GangWorld) bindPod(g, i int) {
	group := &w.groups[g]
	if w.cells[i].runs = uint8(1 + g); group.unseen < group.waiting {
		w.cells[i].pending = true
	} else {
		group.unseen--
	}
	if group.waiting--; w.cells[i].showsPod() {
		w.updatePod(i) // another pod of the group ran there before
	}
}

// endPod ends the pod of a machine, which the store may not show there yet.
func (w *GangWorld) endPod(i int) {
	c := &w.cells[i]
	if c.pending {
		w.groups[c.runs-1].gone++
		c.pending = false
	}
	c.runs = nothing
	w.room++
	if c.showsPod() {
		w.updatePod(i)
	}
}

// restart forgets all that is only in memory, and lists everything again.
func (w *GangWorld) restart() {
	w.shown, w.known, w.raising = w.replicas, 0, raising{}
	for i := range w.cells {
		w.cells[i].updateStore()
		w.updatePod(i)
	}
	for g := range w.groups {
		group := &w.groups[g]
		group.unseen, group.gone, group.behind, group.known = 0, 0, 0, group.exists
	}
}

func groupName(g int) string { return string(rune('A' + g)) }

// String describes the world in one line.
func (w GangWorld) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replicas=%d (known: %d)", w.replicas, w.newest())
	for g, group := range w.groups {
		fmt.Fprintf(&b, " %s: %d wait", groupName(g), group.waiting)
		if seen := w.shownWaiting(g); seen != group.waiting {
			fmt.Fprintf(&b, " (known: %d)", seen)
		}
	}
	for i := range w.cells {
		if c := &w.cells[i]; c.there {
			fmt.Fprintf(&b, " %s:%s", name(i), c)
		}
	}
	if w.raising.by > 0 {
		fmt.Fprintf(&b, " to raise from %d by %d", w.raising.basis, w.raising.by)
	}
	return b.String()
}

func (c *gangCell) String() string {
	words := stateWords(c.ready, c.marked)
	switch c.runs {
	case nothing:
	case stranger:
		words = append(words, "busy")
	default:
		words = append(words, "runs "+groupName(int(c.runs)-1))
	}
	if !c.isLatest() || !c.showsPod() {
		words = append(words, "outdated")
	}
	return "[" + strings.Join(words, " ") + "]"
}
