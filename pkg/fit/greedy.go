// SPDX-License-Identifier: Apache-2.0

package fit

import "cmp"

// greedy opens machines until no remaining pod fits any of them.
func (k *packer) greedy() {
	for k.waiting() {
		k.tryWaiting()
		g := k.bestGroup()
		if g < 0 {
			return
		}
		k.openMachine(g)
		k.resettle()
	}
}

// tryWaiting has the next machine tried with the shapes that wait.
func (k *packer) tryWaiting() {
	k.trying = k.trying[:0]
	for _, s := range k.shapes {
		if k.isWaiting(s) {
			k.trying = append(k.trying, s)
		}
	}
}

// bestGroup returns the group whose next machine holds most, or -1 if none holds anything. Among
// equals, it returns the one whose machine is better used, then the one with more machines left.
func (k *packer) bestGroup() int {
	best := -1
	var bestAmount, bestUsed float64
	for g := range k.groups {
		if !k.canOpen(g) {
			continue
		}
		before := len(k.steps)
		amount, used := k.openMachine(g)
		k.undoTo(before)
		if amount == 0 {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(amount, bestAmount), cmp.Compare(used, bestUsed), cmp.Compare(k.machinesLeft(g), k.machinesLeft(best))) > 0 {
			best, bestAmount, bestUsed = g, amount, used
		}
	}
	return best
}

// openMachine opens the next machine of a group and fills it. It returns how much it holds, in
// parts of the largest machine, and the part of it that is used.
func (k *packer) openMachine(g int) (amount, used float64) {
	i := k.room.number[k.groups[g].Nodes[k.opened[g]]]
	slot := k.room.slots[i]
	k.openSlot(put{slot: i, group: g})
	had := slot.free.clone()
	before := len(k.steps)
	if k.aligned {
		k.fillByMatch(i)
	}
	for again := true; again; {
		again = false
		for _, s := range k.trying {
			again = k.fillNode(s, i) > 0 && s.fickle || again
		}
	}
	for _, step := range k.steps[before:] {
		amount += step.shape.size
	}
	return amount, had.usedSince(slot.free)
}

// fillByMatch fills a node one pod at a time, each time with the shape that matches best what is
// left there.
func (k *packer) fillByMatch(i int) {
	slot := k.room.slots[i]
	had := slot.free.clone()
	for {
		var best *shape
		most := -1.0
		for _, s := range k.trying {
			if match := had.similarity(slot.free, s.like.needs); match > most && k.nextFits(s, i) {
				best, most = s, match
			}
		}
		if best == nil {
			return
		}
		k.placeNext(best, i)
	}
}

// canOpen reports whether a group has another machine to open.
func (k *packer) canOpen(g int) bool {
	if k.machinesLeft(g) <= 0 {
		return false
	}
	i, ok := k.room.number[k.groups[g].Nodes[k.opened[g]]]
	return ok && k.room.slots[i].closed
}

func (k *packer) machinesLeft(g int) int {
	return min(len(k.groups[g].Nodes), k.groups[g].Limit) - k.opened[g]
}
