// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
)

// Group are machines of a reserve that are opened one after the other: the first can be had alone, the second only with
// the first.
type Group struct {
	Name string
	// Nodes are names of closed nodes of the room, in the order in which they are opened.
	Nodes []string
	// Limit is how many of them may be opened.
	Limit int
}

// Place is where a pod goes.
type Place struct {
	Pod  *Pod
	Node string
}

// Demand is what waits for a place.
type Demand struct {
	Pods []*Pod
	// Uncreated are pods that will be created.
	Uncreated []Uncreated
	// Interrupted is asked now and then whether to end with what has been found so far; nil never interrupts.
	Interrupted func() bool
	// Budget bounds the work, give or take what is begun; [MaxWork] unless set.
	Budget int
}

// Uncreated is how many pods like one that exists are yet to be created. It costs no more than there is room for.
type Uncreated struct {
	Like  *Pod
	Count int
}

// Packing is where pods go, and what that takes.
type Packing struct {
	Places []Place
	// Opened is how many nodes of each group are needed.
	Opened []int
	// Uncreated is how many pods that are yet to be created have a place, by node.
	Uncreated map[string]int
	// Left are the pods that have no place.
	Left []*Pod
	// Unfinished are pods that were not looked at to the end: see [MaxWork].
	Unfinished []*Pod
	// Work is about how many comparisons it took.
	Work int
}

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

// shape are pods that are alike.
type shape struct {
	// like is one of them.
	like *Pod
	pods []*Pod
	// uncreated is how many more there will be.
	uncreated int
	// placed is how many of them have a place: first of those that exist.
	placed int
	// size is the part of the largest machine that one takes, and homes how many groups could hold one.
	size  float64
	homes int
	// fickle: where one has no place now, it may have one when others have theirs.
	fickle bool
	purse  *purse
}

// count is how many there are and will be.
func (s *shape) count() int { return len(s.pods) + s.uncreated }

func (s *shape) next() *Pod {
	switch {
	case s.placed < len(s.pods):
		return s.pods[s.placed]
	case s.placed < s.count():
		return s.like
	}
	return nil
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

func bySize(a, b *shape) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.homes, b.homes))
}

// byPriority puts those of high priority first.
func byPriority(then func(a, b *shape) int) func(a, b *shape) int {
	return func(a, b *shape) int {
		return cmp.Or(cmp.Compare(b.like.Priority(), a.like.Priority()), then(a, b))
	}
}
