// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"slices"
)

// component is a set of states each of which can be reached from each other, without faults.
type component struct {
	// states are in the order in which they were found.
	states []int32
}

func (c *component) has(i int32) bool {
	_, found := slices.BinarySearch(c.states, i)
	return found
}

// components returns the largest components of more than one state among those that are left, the
// one that was found first in front. It is Tarjan's algorithm without recursion.
func (g *graph[S]) components(left func(int32) bool) (all []*component) {
	t := &tarjan[S]{graph: g, left: left, order: map[int32]int32{}, low: map[int32]int32{}, open: map[int32]bool{}}
	for i := range g.states.n {
		if n := int32(i); left(n) && t.order[n] == 0 {
			t.visit(n)
		}
	}
	slices.SortFunc(t.found, func(a, b *component) int { return cmp.Compare(a.states[0], b.states[0]) })
	return t.found
}

// tarjan finds components. Maps are enough: few states are left.
type tarjan[S comparable] struct {
	*graph[S]
	left func(int32) bool
	// order is when a state was visited, from 1, and low the earliest state that it leads back to.
	order, low map[int32]int32
	// stack contains visited states whose component is not known yet.
	stack []int32
	open  map[int32]bool
	found []*component
}

// visit visits everything that a state leads to. A frame is a state, and how many of its steps have
// been followed.
func (t *tarjan[S]) visit(root int32) {
	type frame struct {
		state int32
		done  int
	}
	t.enter(root)
	for frames := []frame{{state: root}}; len(frames) > 0; {
		f := &frames[len(frames)-1]
		i, next := f.state, t.nextOf(f.state)
		if f.done == len(next) {
			frames = frames[:len(frames)-1]
			t.leave(i)
			if len(frames) > 0 {
				above := frames[len(frames)-1].state
				t.low[above] = min(t.low[above], t.low[i])
			}
			continue
		}
		to := next[f.done].to
		f.done++
		switch {
		case !t.left(to):
		case t.order[to] == 0:
			t.enter(to)
			frames = append(frames, frame{state: to})
		case t.open[to]:
			t.low[i] = min(t.low[i], t.order[to])
		}
	}
}

func (t *tarjan[S]) enter(i int32) {
	n := int32(len(t.order)) + 1
	t.order[i], t.low[i], t.open[i] = n, n, true
	t.stack = append(t.stack, i)
}

// leave ends a component with the state that was visited first.
func (t *tarjan[S]) leave(i int32) {
	if t.low[i] != t.order[i] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != i {
		at--
	}
	c := &component{states: slices.Clone(t.stack[at:])}
	t.stack = t.stack[:at]
	for _, j := range c.states {
		t.open[j] = false
	}
	if len(c.states) > 1 {
		slices.Sort(c.states)
		t.found = append(t.found, c)
	}
}
