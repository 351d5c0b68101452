// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

// raiseSlots is the maximum number of machines in the search of raises.
const raiseSlots = 4

// cell is a Machine with its Node and at most one pod, which fills it.
type cell struct {
	there, marked, ready, busy bool
	// Shown is what the stores of package release show. pending reports whether they show its pod as
	// one that waits.
	shown struct{ there, marked, ready, busy, pending bool }
}

// isLatest reports whether the stores show the latest Machine. Pods have a store of their own.
func (c *cell) isLatest() bool {
	return c.shown.there == c.there && c.shown.marked == c.marked && c.shown.ready == c.ready
}

func (c *cell) updateStore() {
	c.shown.there, c.shown.marked, c.shown.ready = c.there, c.marked, c.ready
}

func (c *cell) updatePod() { c.shown.busy, c.shown.pending = c.busy, false }

// raising is a decision of package release that is not written yet.
type raising struct{ by, basis uint8 }

// loop is a loop of an autoscaler. Its request is decided on what it saw, and made later.
type loop struct {
	begun, asks bool
	need        uint8
	// seen are the replicas that the node groups' server noted when the loop began; known is false
	// if it did not.
	seen  uint8
	known bool
}

// RaiseWorld is a MachineDeployment with machines and pods that each need one of them, and what is
// about to raise its replicas.
type RaiseWorld struct {
	replicas uint8
	cells    [raiseSlots]cell
	// waiting are pods without a machine; unseen are those of them that package release does not
	// know. most is how many pods there were at once, or seemed to be.
	waiting, unseen, most uint8
	// shown are the replicas that the store shows. known are those that release, and the server,
	// know from answers to their writes, if they are more.
	shown   uint8
	known   [2]uint8
	raising raising
	loop    loop
	faults  uint8
}

// Those who raise replicas.
const (
	releaser = 0
	grouper  = 1
)

// newest is what one of them knows of the replicas, which only rise here.
func (w *RaiseWorld) newest(who int) uint8 { return max(w.shown, w.known[who]) }

// count counts the machines that meet a condition.
func (w *RaiseWorld) count(is func(c *cell) bool) (n uint8) {
	for i := range w.cells {
		if c := &w.cells[i]; c.there && is(c) {
			n++
		}
	}
	return n
}

func (w *RaiseWorld) pods() uint8 {
	return w.waiting + w.count(func(c *cell) bool { return c.busy })
}

// shownWaiting is how many pods package release believes to wait.
func (w *RaiseWorld) shownWaiting() uint8 {
	return w.waiting - w.unseen + w.count(func(c *cell) bool { return c.shown.pending })
}

// shownPods is how many pods package release believes to exist.
func (w *RaiseWorld) shownPods() uint8 {
	return w.shownWaiting() + w.count(func(c *cell) bool { return c.shown.busy })
}

// needed is how many machines an autoscaler requests: for each pod that no machine has room for, and
// none that is already requested will have.
func (w *RaiseWorld) needed(limit uint8) uint8 {
	serving := w.count(func(c *cell) bool { return !c.marked && c.ready })
	free := w.count(func(c *cell) bool { return !c.marked && c.ready && !c.busy })
	target := w.newest(grouper)
	need := int(w.waiting) - int(free) - max(0, int(target)-int(serving))
	return uint8(max(0, min(need, int(limit)-int(target))))
}

// restart forgets all that is only in memory, and lists everything again.
func (w *RaiseWorld) restart() {
	w.shown, w.known, w.raising, w.unseen = w.replicas, [2]uint8{}, raising{}, 0
	for i := range w.cells {
		w.cells[i].updateStore()
		w.cells[i].updatePod()
	}
}

// String describes the world in one line.
func (w RaiseWorld) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replicas=%d (known: %d, %d) waiting=%d", w.replicas, w.newest(releaser), w.newest(grouper), w.waiting)
	if seen := w.shownWaiting(); seen != w.waiting {
		fmt.Fprintf(&b, " (known: %d)", seen)
	}
	for i := range w.cells {
		if c := &w.cells[i]; c.there {
			fmt.Fprintf(&b, " %s:%s", name(i), c)
		}
	}
	if w.raising.by > 0 {
		fmt.Fprintf(&b, " to raise from %d by %d", w.raising.basis, w.raising.by)
	}
	if w.loop.begun {
		fmt.Fprintf(&b, " loop from %d", w.loop.seen)
	}
	if w.loop.asks {
		fmt.Fprintf(&b, " needs %d", w.loop.need)
	}
	return b.String()
}

func (c *cell) String() string {
	words := []string{"booting"}
	if c.ready {
		words[0] = "ready"
	}
	if c.marked {
		words = append(words, "reserve")
	}
	if c.busy {
		words = append(words, "busy")
	}
	if !c.isLatest() || c.shown.busy != c.busy {
		words = append(words, "outdated")
	}
	return "[" + strings.Join(words, " ") + "]"
}
