// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
)

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

// offer is what the next machine of a group would hold.
type offer struct {
	group        int
	amount, used float64
}

// sameAmount is the difference of amounts that come from adding the same parts in another order.
const sameAmount = 1e-9

// bestGroup returns the group whose next machine holds most, or -1 if none holds anything. Among
// equals, it prefers the one whose machine is better used, then the one with more machines left. But
// of those that are similar to this one and hold as much, it returns the smallest.
func (k *packer) bestGroup() int {
	offers := k.offers()
	if len(offers) == 0 {
		return -1
	}
	best := slices.MaxFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.amount, b.amount), cmp.Compare(a.used, b.used), cmp.Compare(k.machinesLeft(a.group), k.machinesLeft(b.group)))
	})
	if k.groups[best.group].Set == "" {
		return best.group
	}
	offers = slices.DeleteFunc(offers, func(o offer) bool {
		return k.groups[o.group].Set != k.groups[best.group].Set || best.amount-o.amount > sameAmount
	})
	return slices.MinFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(k.size(a.group), k.size(b.group)), cmp.Compare(k.machinesLeft(b.group), k.machinesLeft(a.group)))
	}).group
}

// offers returns the groups whose next machine holds something, in their order.
func (k *packer) offers() []offer {
	var all []offer
	for g := range k.groups {
		if !k.canOpen(g) {
			continue
		}
		before := len(k.steps)
		amount, used := k.openMachine(g)
		k.undoTo(before)
		if amount > 0 {
			all = append(all, offer{g, amount, used})
		}
	}
	return all
}

// size returns how many machines a group has, with those that are open.
func (k *packer) size(g int) int { return k.groups[g].Size + k.opened[g] }

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
