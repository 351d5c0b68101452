// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
)

// Pack gives pods that wait places in a room: first on what is open, then on as few machines of the groups as it finds.
// Where there is not room for all, those of higher priority go first. The room is left with the pods in their places
// and with the machines open.
func Pack(r *Room, d Demand, groups []Group) Packing {
	k := &packer{room: r, groups: groups, opened: make([]int, len(groups)), began: r.work}
	k.gather(d)
	k.budget = newBudget(cmp.Or(d.Budget, MaxWork), k.shapes, d.Interrupted)
	k.scale()
	slices.SortStableFunc(k.shapes, byPriority(bySize))
	k.settle()
	if k.waiting() {
		k.release()
	}
	return k.result()
}

// put is one step that can be taken back: a pod gets a place, or a group opens its next machine.
type put struct {
	shape *shape
	slot  int
	group int
}

type packer struct {
	room   *Room
	groups []Group
	shapes []*shape
	left   []*Pod
	opened []int
	steps  []put
	budget *budget
	// began is the work of the room before.
	began int
	// aligned: machines are filled by what goes best with what is left, not by the order of shapes.
	aligned bool
}

// gather sorts pods by shape.
func (k *packer) gather(d Demand) {
	known := map[string]*shape{}
	of := func(p *Pod) *shape {
		s, ok := known[p.Shape()]
		if !ok {
			s = &shape{like: p, fickle: len(p.together)+len(p.spread) > 0}
			known[p.Shape()] = s
			k.shapes = append(k.shapes, s)
		}
		return s
	}
	for _, p := range d.Pods {
		if p.Unclear != "" {
			k.left = append(k.left, p)
			continue
		}
		s := of(p)
		s.pods = append(s.pods, p)
	}
	for _, u := range d.Uncreated {
		if u.Like.Unclear == "" && u.Count > 0 {
			s := of(u.Like)
			s.uncreated = min(s.uncreated+min(u.Count, maxAmount), maxAmount)
		}
	}
	slices.SortFunc(k.shapes, func(a, b *shape) int { return cmp.Compare(a.like.Shape(), b.like.Shape()) })
}

// settle places what fits on nodes as they are.
func (k *packer) settle() {
	for _, s := range k.shapes {
		k.along(s)
	}
	k.resettle()
}

// resettle looks again for pods that may have a place now since others have theirs, until nothing changes.
func (k *packer) resettle() {
	for again := true; again; {
		again = false
		for _, s := range k.shapes {
			again = s.fickle && k.along(s) > 0 || again
		}
	}
}

// along fills the nodes with pods of a shape, in their order.
func (k *packer) along(s *shape) int {
	n := 0
	for i := 0; i < len(k.room.slots) && s.next() != nil && k.budget.allows(s.purse); i++ {
		n += k.fill(s, i)
	}
	return n
}

// fill places as many pods of a shape on a node as fit there.
func (k *packer) fill(s *shape, i int) int {
	n := 0
	for k.fits(s, i) {
		k.put(s, i)
		n++
	}
	return n
}

// fits reports whether the next pod of a shape fits on a node; false where its namespace has spent its part of the budget.
func (k *packer) fits(s *shape, i int) bool {
	p := s.next()
	if p == nil || !k.budget.allows(s.purse) {
		return false
	}
	before := k.room.work
	fits := k.room.ask(p, i) == Fits
	k.budget.spend(s.purse, k.room.work-before)
	return fits
}

// put pays for the way back, too.
func (k *packer) put(s *shape, i int) {
	before := k.room.work
	k.room.put(s.next(), i)
	k.budget.spend(s.purse, 2*(k.room.work-before))
	s.placed++
	k.steps = append(k.steps, put{shape: s, slot: i})
}

// open opens the next machine of a group and fills it. It returns how much went there, as parts of the largest machine,
// and what part of it is used.
func (k *packer) open(g int) (amount, used float64) {
	i := k.room.number[k.groups[g].Nodes[k.opened[g]]]
	slot := k.room.slots[i]
	slot.closed = false
	k.opened[g]++
	k.steps = append(k.steps, put{slot: i, group: g})
	had := slot.free.copy()
	before := len(k.steps)
	if k.aligned {
		k.align(i)
	}
	for again := true; again; {
		again = false
		for _, s := range k.shapes {
			again = k.fill(s, i) > 0 && s.fickle || again
		}
	}
	for _, step := range k.steps[before:] {
		amount += step.shape.size
	}
	return amount, had.spent(slot.free)
}

// align fills a node one pod after the other, each time with one of the shape that goes best with what is left there: much
// of what there is much of.
func (k *packer) align(i int) {
	slot := k.room.slots[i]
	had := slot.free.copy()
	for {
		var best *shape
		most := -1.0
		for _, s := range k.shapes {
			if match := had.match(slot.free, s.like.needs); match > most && k.fits(s, i) {
				best, most = s, match
			}
		}
		if best == nil {
			return
		}
		k.put(best, i)
	}
}

// back takes back all steps but the first n.
func (k *packer) back(n int) {
	for len(k.steps) > n {
		last := k.steps[len(k.steps)-1]
		k.steps = k.steps[:len(k.steps)-1]
		if last.shape == nil {
			k.room.slots[last.slot].closed = true
			k.opened[last.group]--
			continue
		}
		last.shape.placed--
		k.room.remove(last.shape.next(), last.slot)
	}
}

// greedy opens machines until nothing is left that one of them could hold.
func (k *packer) greedy() {
	for k.waiting() {
		g := k.best()
		if g < 0 {
			return
		}
		k.open(g)
		k.resettle()
	}
}

// best is the group whose next machine holds most; of equal ones that which is used better then, then that with more
// machines left; -1 where none holds anything.
func (k *packer) best() int {
	best, bestAmount, bestUsed := -1, 0.0, 0.0
	for g := range k.groups {
		if !k.may(g) {
			continue
		}
		before := len(k.steps)
		amount, used := k.open(g)
		k.back(before)
		if amount == 0 {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(amount, bestAmount), cmp.Compare(used, bestUsed), cmp.Compare(k.spare(g), k.spare(best))) > 0 {
			best, bestAmount, bestUsed = g, amount, used
		}
	}
	return best
}

// may says that a group has another machine to open.
func (k *packer) may(g int) bool {
	if k.spare(g) <= 0 {
		return false
	}
	i, ok := k.room.number[k.groups[g].Nodes[k.opened[g]]]
	return ok && k.room.slots[i].closed
}

func (k *packer) spare(g int) int {
	return min(len(k.groups[g].Nodes), k.groups[g].Limit) - k.opened[g]
}

// waiting reports whether some pods have no place yet, and may still be looked at.
func (k *packer) waiting() bool {
	return slices.ContainsFunc(k.shapes, func(s *shape) bool { return s.next() != nil && k.budget.allows(s.purse) })
}

func (k *packer) result() Packing {
	p := Packing{Opened: k.opened, Left: k.left, Uncreated: map[string]int{}, Work: k.room.work - k.began}
	placed := map[*shape]int{}
	for _, step := range k.steps {
		s := step.shape
		if s == nil {
			continue
		}
		if node := k.room.slots[step.slot].node.Name; placed[s] < len(s.pods) {
			p.Places = append(p.Places, Place{Pod: s.pods[placed[s]], Node: node})
		} else {
			p.Uncreated[node]++
		}
		placed[s]++
	}
	for _, s := range k.shapes {
		left := s.pods[min(s.placed, len(s.pods)):]
		if s.purse.cut {
			p.Unfinished = append(p.Unfinished, left...)
		} else {
			p.Left = append(p.Left, left...)
		}
	}
	return p
}
