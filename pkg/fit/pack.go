// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
)

// Pack places pods in a room: first on open nodes, then on as few machines of the groups as it can.
// If there is not enough room for all, pods of higher priority come first, and among those of the
// same priority, pods that exist. Afterwards, the room contains the placed pods, and the machines
// are open.
func Pack(r *Room, d Demand, groups []Group) Packing {
	k := &packer{room: r, groups: groups, opened: make([]int, len(groups)), began: r.work}
	k.gather(d)
	k.budget = newBudget(cmp.Or(d.Budget, MaxWork), k.shapes, d.Interrupted)
	k.sortSlots()
	k.measure()
	slices.SortStableFunc(k.shapes, func(a, b *shape) int { return cmp.Or(awaitingFirst(a, b), byRank(bySize)(a, b)) })
	k.settle()
	if k.waiting() {
		k.release()
	}
	return k.result()
}

// put is one step that can be undone: a pod gets a place, or a group opens its next machine.
type put struct {
	shape *shape
	slot  int
	group int
}

type packer struct {
	room   *Room
	groups []Group
	shapes []*shape
	// trying are the shapes that are tried on the next machine of each group.
	trying []*shape
	left   []*Pod
	opened []int
	steps  []put
	budget *budget
	// open are the slots that are open, in order, and all are all of them.
	open, all []int
	// began is the work that the room had done before.
	began int
	// aligned reports whether machines are filled with the best match for what is left, and not in
	// the order of shapes.
	aligned bool
}

// gather sorts pods by shape. Pods that will be created are apart from those that exist, and come
// after those of the same shape.
func (k *packer) gather(d Demand) {
	existing, uncreated := map[string]*shape{}, map[string]*shape{}
	of := func(known map[string]*shape, p *Pod) *shape {
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
		s := of(existing, p)
		s.pods = append(s.pods, p)
	}
	for _, u := range d.Uncreated {
		if u.Like.Unclear == "" && u.Count > 0 {
			s := of(uncreated, u.Like)
			s.uncreated = min(s.uncreated+min(u.Count, maxAmount), maxAmount)
		}
	}
	slices.SortStableFunc(k.shapes, func(a, b *shape) int { return cmp.Compare(a.like.Shape(), b.like.Shape()) })
}

// settle places pods on nodes that are open already, if they fit.
func (k *packer) settle() {
	for _, s := range k.shapes {
		k.placeShape(s)
	}
	k.resettle()
}

// resettle tries pods again that may have a place now because of other placed pods, until nothing
// changes.
func (k *packer) resettle() {
	for again := true; again; {
		again = false
		for _, s := range k.shapes {
			again = s.fickle && k.placeShape(s) > 0 || again
		}
	}
}

// placeShape places pods of a shape on the nodes, in their order.
func (k *packer) placeShape(s *shape) int {
	n := 0
	slots := k.all
	if s.shutOut {
		slots = k.open
	}
	for _, i := range slots {
		if s.nextPod() == nil || !k.budget.allows(s.purse) {
			break
		}
		n += k.fillNode(s, i)
	}
	return n
}

// fillNode places as many pods of a shape on a node as fit there.
func (k *packer) fillNode(s *shape, i int) int {
	n := 0
	for k.nextFits(s, i) {
		k.placeNext(s, i)
		n++
	}
	return n
}

// nextFits reports whether the next pod of a shape fits on a node. It returns false if the
// namespace of the pod has used its part of the budget, or has too little left to find out and to
// place the pod.
func (k *packer) nextFits(s *shape, i int) bool {
	p := s.nextPod()
	if p == nil || !k.budget.allows(s.purse) {
		return false
	}
	before := k.room.work
	limit := k.budget.stepLimit(s.purse)
	o, ok := k.room.obstacleWithin(p, i, limit)
	k.budget.spend(s.purse, k.room.work-before)
	if !ok || o == Fits && k.room.recountWork(p) > limit {
		s.purse.forfeit()
		return false
	}
	return o == Fits
}

// placeNext places the next pod. Its cost includes undoing it.
func (k *packer) placeNext(s *shape, i int) {
	before := k.room.work
	k.room.addPod(s.nextPod(), i)
	k.budget.spend(s.purse, 2*(k.room.work-before))
	s.placed++
	k.steps = append(k.steps, put{shape: s, slot: i})
}

// undoTo takes back all steps except the first n.
func (k *packer) undoTo(n int) {
	for len(k.steps) > n {
		last := k.steps[len(k.steps)-1]
		k.steps = k.steps[:len(k.steps)-1]
		if last.shape == nil {
			k.closeSlot(last)
			continue
		}
		last.shape.placed--
		k.room.remove(last.shape.nextPod(), last.slot)
	}
}

// waiting reports whether some pods have no place yet, and may still be looked at.
func (k *packer) waiting() bool { return slices.ContainsFunc(k.shapes, k.isWaiting) }

func (k *packer) isWaiting(s *shape) bool { return s.nextPod() != nil && k.budget.allows(s.purse) }

func (k *packer) result() Packing {
	p := Packing{Opened: k.opened, Left: k.left, Uncreated: map[string]int{}, UncreatedLike: map[*Pod]map[string]int{}, UnfinishedLike: map[*Pod]bool{}, Work: k.room.work - k.began}
	placed := map[*shape]int{}
	for _, step := range k.steps {
		s := step.shape
		if s == nil {
			continue
		}
		if node := k.room.slots[step.slot].node.Name; placed[s] < len(s.pods) {
			p.Places = append(p.Places, Place{Pod: s.pods[placed[s]], Node: node})
		} else {
			p.addUncreated(s.like, node)
		}
		placed[s]++
	}
	for _, s := range k.shapes {
		left := s.pods[min(s.placed, len(s.pods)):]
		if s.purse.cut {
			p.Unfinished = append(p.Unfinished, left...)
			if s.uncreated > 0 && s.nextPod() != nil {
				p.UnfinishedLike[s.like] = true
			}
		} else {
			p.Left = append(p.Left, left...)
		}
	}
	return p
}
