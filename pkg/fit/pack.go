// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
)

// Group is a list of reserve machines that are opened in order: the second only after the first.
type Group struct {
	Name string
	// Nodes are the names of closed nodes of the room, in the order in which they are opened.
	Nodes []string
	// Limit is how many of them may be opened.
	Limit int
	// Set is the name of a set of similar groups; empty if the group is similar to no other. Of a set,
	// the group with the smallest Size opens its next machine first. Size is how many machines it has
	// beside these.
	Set  string
	Size int
}

// Place is the place of a pod.
type Place struct {
	Pod  *Pod
	Node string
}

// Demand is what needs a place.
type Demand struct {
	Pods []*Pod
	// Uncreated are pods that will be created.
	Uncreated []Uncreated
	// Least is how many of the pods must have a place. If there is room for fewer, no pod has one, and
	// no machine is opened. For the pods of a group that the scheduler starts together, or not at all.
	Least int
	// Interrupted is called now and then. If it returns true, the packing ends with its results so
	// far; nil never interrupts.
	Interrupted func() bool
	// Budget limits the work; a step that has begun is completed, and one that is too expensive does
	// not begin. [MaxWork] unless set.
	Budget int
}

// Uncreated is a number of pods that will be created like an existing one. Its cost is limited by
// the room there is, not by the number.
type Uncreated struct {
	Like  *Pod
	Count int
}

// Packing contains the places of pods, and what is needed for them.
type Packing struct {
	Places []Place
	// Opened is how many nodes of each group are needed.
	Opened []int
	// Uncreated is how many pods that will be created have a place, by node.
	Uncreated map[string]int
	// UncreatedLike is the same for each [Uncreated.Like], or for the first of those that are alike.
	UncreatedLike map[*Pod]map[string]int
	// UnfinishedLike are the keys of UncreatedLike of which not all pods have a place, because they
	// were not fully considered.
	UnfinishedLike map[*Pod]bool
	// Left are the pods without a place.
	Left []*Pod
	// Unfinished are pods that were not fully considered; see [MaxWork].
	Unfinished []*Pod
	// Work is the number of comparisons, approximately.
	Work int
}

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
	if d.Least > 0 {
		k.keepTogether(d.Least)
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
		if u.Like.Unclear == "" && u.Like.repeatable() && u.Count > 0 {
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

func (p *Packing) addUncreated(like *Pod, node string) {
	if p.UncreatedLike[like] == nil {
		p.UncreatedLike[like] = map[string]int{}
	}
	p.Uncreated[node]++
	p.UncreatedLike[like][node]++
}

// shape contains interchangeable pods.
type shape struct {
	// like is one of them.
	like *Pod
	// pods are those that exist. uncreated is how many will be created. One of the two is empty.
	pods      []*Pod
	uncreated int
	// placed is how many of them have a place.
	placed int
	// size is the part of the largest machine that one pod takes, homes how many groups could hold
	// one.
	size  float64
	homes int
	// fickle reports whether a pod without a place may get one once other pods have theirs.
	fickle bool
	// shutOut reports whether a taint that all closed nodes have keeps the pods away.
	shutOut bool
	purse   *purse
}

// podCount returns the number of pods that exist or will be created.
func (s *shape) podCount() int { return len(s.pods) + s.uncreated }

func (s *shape) nextPod() *Pod {
	switch {
	case s.placed < len(s.pods):
		return s.pods[s.placed]
	case s.placed < s.podCount():
		return s.like
	}
	return nil
}

func bySize(a, b *shape) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.homes, b.homes))
}

// awaitingFirst sorts pods first that the scheduler has chosen a node for.
func awaitingFirst(a, b *shape) int {
	switch {
	case a.like.AwaitsVolume() == b.like.AwaitsVolume():
		return 0
	case a.like.AwaitsVolume():
		return -1
	}
	return 1
}

// byRank sorts pods of high rank first.
func byRank(then func(a, b *shape) int) func(a, b *shape) int {
	return func(a, b *shape) int { return cmp.Or(compareRanks(a, b), then(a, b)) }
}

// compareRanks decides who is served first if there is not enough room for all: pods of higher
// priority, then pods that exist.
func compareRanks(a, b *shape) int {
	return cmp.Or(cmp.Compare(b.like.Priority(), a.like.Priority()), existingFirst(a, b))
}

func existingFirst(a, b *shape) int { return cmp.Compare(min(a.uncreated, 1), min(b.uncreated, 1)) }
