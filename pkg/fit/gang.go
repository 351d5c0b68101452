// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
)

// keepTogether undoes a packing if fewer pods have a place than must have one, or if it depends on
// the nodes that the scheduler chooses whether they have one.
func (k *packer) keepTogether(least int) {
	if k.placedCount() < least || k.choiceMatters() && !k.holdsHowever(least) {
		k.undoTo(0)
	}
}

func (k *packer) podCount() (n int) {
	for _, s := range k.shapes {
		n += s.podCount()
	}
	return n
}

func (k *packer) placedCount() (n int) {
	for _, s := range k.shapes {
		n += s.placed
	}
	return n
}

// choiceMatters reports whether the place of one pod may decide how many others have one. If all are
// alike and have no rules about each other, it does not.
func (k *packer) choiceMatters() bool {
	return len(k.shapes) > 1 || slices.ContainsFunc(k.shapes, func(s *shape) bool { return s.like.ruleCount() > 0 })
}

const (
	// maxTrials is how many ways of choosing nodes are tried, and minTrials how many for a large group.
	maxTrials, minTrials = 64, 2
	// trialWork is how many comparisons all trials take, if these are more than the least.
	trialWork = MaxWork / 4
)

// holdsHowever reports whether enough pods have a place if the scheduler takes other nodes than the
// packing does: it places one pod after the other, in an order that is not known, and moves none again. If
// a trial leaves pods over, another machine is opened for them. A packing that passes all trials is
// restored, with the machines that were opened meanwhile.
func (k *packer) holdsHowever(least int) bool {
	packed := slices.Clone(k.steps)
	k.undoTo(0)
	for _, step := range packed {
		if step.shape == nil {
			k.repeatStep(step)
		}
	}
	t := trial{packer: k, whole: map[int]stock{}}
	for i := range maxTrials {
		t.begin(i)
		if i >= minTrials && i*len(t.slots)*k.podCount() > trialWork {
			break
		}
		for !t.places(least) {
			if !t.openMore(least) {
				return false
			}
			t.begin(i)
		}
		k.undoTo(t.opened)
	}
	for _, step := range packed {
		if step.shape != nil {
			k.repeatStep(step)
		}
	}
	return true
}

// trial places the pods of a group as the scheduler might, on the machines that are open.
type trial struct {
	*packer
	number int
	random sequence
	// opened is how many steps opened machines, which come first.
	opened int
	// slots are those that have room for one of the pods, and whole is what they have when empty.
	slots []int
	whole map[int]stock
}

// begin prepares the trial with this number.
func (t *trial) begin(number int) {
	t.number, t.opened, t.slots = number, len(t.steps), t.slots[:0]
	t.random = sequence(number)
	for i, s := range t.room.slots {
		t.room.work++
		if slices.ContainsFunc(t.shapes, func(one *shape) bool { return s.free.fits(one.like.needs) }) {
			t.slots = append(t.slots, i)
		}
	}
}

// places reports whether enough pods have a place.
func (t *trial) places(least int) bool {
	for _, s := range t.pods() {
		if i := t.choose(s); i >= 0 {
			t.placeNext(s, i)
		}
	}
	return t.placedCount() >= least
}

// openMore opens machines for the pods that are left over, and reports whether enough pods have a place
// then. Only the machines remain.
func (t *trial) openMore(least int) bool {
	before := len(t.steps)
	for t.waiting() {
		t.tryWaiting()
		g := t.bestGroup()
		if g < 0 {
			break
		}
		t.openMachine(g)
	}
	enough, more := t.placedCount() >= least, slices.Clone(t.steps[before:])
	t.undoTo(t.opened)
	for _, step := range more {
		if step.shape == nil {
			t.openSlot(step)
		}
	}
	return enough
}

// pods returns the shape of each pod in an order in which the scheduler may look at them: those
// of higher priority first. The first trials have the small ones come before the large ones, which is
// the worst for most groups.
func (t *trial) pods() (all []*shape) {
	for _, s := range t.shapes {
		all = append(all, slices.Repeat([]*shape{s}, s.podCount())...)
	}
	for i := range all {
		j := t.random.next(i + 1)
		all[i], all[j] = all[j], all[i]
	}
	slices.SortStableFunc(all, func(a, b *shape) int {
		order := cmp.Compare(b.like.Priority(), a.like.Priority())
		if order == 0 && t.number < minTrials {
			order = cmp.Compare(a.size, b.size)
		}
		return order
	})
	return all
}

// choose returns the slot for the next pod of a shape, or -1 if none has room. In every other trial,
// that is the fullest one, as a scheduler prefers it that packs pods, else the emptiest. Of those that are
// equal, it may be any, as with the scheduler.
func (t *trial) choose(s *shape) int {
	best, most := -1, 0.0
	for _, i := range t.slots {
		if !t.nextFits(s, i) {
			continue
		}
		score := t.emptiness(i)
		if t.number%2 == 1 {
			score = -score
		}
		if best < 0 || score > most || score == most && t.random.next(2) == 0 {
			best, most = i, score
		}
	}
	return best
}

// emptiness is how much of the CPU and the memory of a node is free.
func (t *trial) emptiness(i int) float64 {
	s := t.room.slots[i]
	whole, known := t.whole[i]
	if !known {
		whole = stockOf(s.node.Status.Allocatable)
		t.whole[i] = whole
	}
	return fraction(s.free.cpu, whole.cpu) + fraction(s.free.memory, whole.memory)
}

// sequence is a sequence of numbers without a pattern, which is the same each time.
type sequence uint64

// next returns a number from 0 to n-1, by the method that is known as SplitMix64.
func (s *sequence) next(n int) int {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}
