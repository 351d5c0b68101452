// SPDX-License-Identifier: Apache-2.0

package fit

import "k8s.io/apimachinery/pkg/labels"

// place is a label of nodes with a value: what a term calls one place.
type place struct{ key, value string }

// tally counts, for all pods of one shape, the other pods that matter to where they may run.
type tally struct {
	// like is one of the shape.
	like *Pod
	// mates are the pods that all its affinity terms name, by place; total is 0 where there are none anywhere.
	mates map[place]int
	total int
	// avoided are the pods that its anti-affinity terms name, hostile those whose anti-affinity names it.
	avoided, hostile map[place]int
	// unsure are pods whose anti-affinity may name it, in namespaces that are not known.
	unsure int
	spread []*domains
}

// domains are the places over which one constraint spreads pods, and how many it counts there.
type domains struct {
	spread
	nodes  []bool
	counts map[string]int
	least  int
	stale  bool
}

func newTally(like *Pod, slots []*slot) *tally {
	t := &tally{like: like, mates: map[place]int{}, avoided: map[place]int{}, hostile: map[place]int{}}
	for _, s := range like.spread {
		t.spread = append(t.spread, newDomains(s, like, slots))
	}
	own := len(like.together)+len(like.apart)+len(like.spread) > 0
	for i, s := range slots {
		pods := s.pods
		if !own {
			pods = s.jealous
		}
		for _, p := range pods {
			t.count(p, i, s, 1)
		}
	}
	return t
}

// newDomains takes the nodes that have a label for every constraint, and that the pod selects unless that is not asked for.
func newDomains(s spread, like *Pod, slots []*slot) *domains {
	d := &domains{spread: s, nodes: make([]bool, len(slots)), counts: map[string]int{}, stale: true}
	for i, slot := range slots {
		selected, _ := like.required.Match(slot.node)
		d.nodes[i] = selected || s.anyNode
		for _, other := range like.spread {
			_, labelled := slot.node.Labels[other.key]
			d.nodes[i] = d.nodes[i] && labelled
		}
		if d.nodes[i] {
			d.counts[slot.node.Labels[s.key]] += 0
		}
	}
	return d
}

// count adds a pod that is on a node, or takes it away.
func (t *tally) count(p *Pod, i int, s *slot, by int) {
	if all(t.like.together, p) {
		for _, term := range t.like.together {
			if addAt(t.mates, s, term.key, by) {
				t.total += by
			}
		}
	}
	for _, term := range t.like.apart {
		if term.names(p) {
			addAt(t.avoided, s, term.key, by)
		}
	}
	for _, term := range p.apart {
		switch {
		case !term.names(t.like):
		case term.somewhere:
			t.unsure += by
		default:
			addAt(t.hostile, s, term.key, by)
		}
	}
	for _, d := range t.spread {
		if d.nodes[i] && d.counted(p) {
			d.counts[s.node.Labels[d.key]] += by
			d.stale = true
		}
	}
}

// addAt tells whether the node is such a place at all.
func addAt(counts map[place]int, s *slot, key string, by int) bool {
	value, ok := s.node.Labels[key]
	if ok {
		counts[place{key, value}] += by
	}
	return ok
}

// ask says what other pods keep one of this shape from a node.
func (t *tally) ask(p *Pod, i int, s *slot) Obstacle {
	switch {
	case t.unsure > 0:
		return Undecided
	case len(p.together) > 0 && !t.company(p, s):
		return Lonely
	case t.repelled(p, s):
		return Repelled
	}
	for _, d := range t.spread {
		if !d.admits(p, s) {
			return Uneven
		}
	}
	return Fits
}

// company says that the pods it must be with are there, or that it is the first of them anywhere.
func (t *tally) company(p *Pod, s *slot) bool {
	there := true
	for _, term := range p.together {
		value, ok := s.node.Labels[term.key]
		if !ok {
			return false
		}
		there = there && t.mates[place{term.key, value}] > 0
	}
	return there || t.total == 0 && all(p.together, p)
}

func (t *tally) repelled(p *Pod, s *slot) bool {
	for _, term := range p.apart {
		if value, ok := s.node.Labels[term.key]; ok && t.avoided[place{term.key, value}] > 0 {
			return true
		}
	}
	for at, n := range t.hostile {
		if n > 0 && s.node.Labels[at.key] == at.value {
			if _, ok := s.node.Labels[at.key]; ok {
				return true
			}
		}
	}
	return false
}

// admits says that one more pod would not make the place of a node differ too much from the emptiest.
func (d *domains) admits(p *Pod, s *slot) bool {
	value, ok := s.node.Labels[d.key]
	if !ok {
		return false
	}
	more := 0
	if d.selector.Matches(labels.Set(p.Object.Labels)) {
		more = 1
	}
	return d.counts[value]+more-d.emptiest() <= d.maxSkew
}

// emptiest is the smallest number of pods in any place; 0 where there are fewer places than asked for.
func (d *domains) emptiest() int {
	if d.stale {
		d.stale, d.least = false, -1
		for _, n := range d.counts {
			if d.least < 0 || n < d.least {
				d.least = n
			}
		}
	}
	if len(d.counts) < d.minDomains {
		return 0
	}
	return max(d.least, 0)
}
