// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"slices"
)

// endless returns a fair story of steps that repeat forever without a fault; nil if all fair paths
// end. It removes final states until only cycles and the paths to them remain.
func (g *graph[S]) endless() *Story[S] {
	left, before := g.countNext(), g.previous()
	var ended []int32
	for i, n := range left {
		if n == 0 {
			ended = append(ended, int32(i))
		}
	}
	for len(ended) > 0 {
		i := ended[len(ended)-1]
		ended = ended[:len(ended)-1]
		for _, j := range before(i) {
			if left[j]--; left[j] == 0 {
				ended = append(ended, j)
			}
		}
	}
	for _, c := range g.components(func(i int32) bool { return left[i] > 0 }) {
		if g.isFair(c) {
			return g.storyAround(c)
		}
	}
	return nil
}

// countNext returns how many steps each state has, without faults.
func (g *graph[S]) countNext() []int32 {
	n := make([]int32, g.states.n)
	for i := range n {
		n[i] = int32(len(g.nextOf(int32(i))))
	}
	return n
}

// previous returns a function that returns the states from which steps lead to a state.
func (g *graph[S]) previous() func(int32) []int32 {
	ends := make([]int, g.states.n+1)
	for _, m := range g.next {
		ends[m.to+1]++
	}
	for i := range g.states.n {
		ends[i+1] += ends[i]
	}
	all, free := make([]int32, len(g.next)), slices.Clone(ends)
	for i := range g.states.n {
		for _, m := range g.nextOf(int32(i)) {
			all[free[m.to]] = int32(i)
			free[m.to]++
		}
	}
	return func(i int32) []int32 { return all[ends[i]:ends[i+1]] }
}

// isFair reports whether everything in a component can repeat forever, and every actor that could
// take a step all the time does take one. A smaller cycle in a component that is not fair is not
// fair either: it has fewer steps, and fewer states in which an actor cannot take one.
func (g *graph[S]) isFair(c *component) bool {
	for _, a := range g.actorsIn(c) {
		if !slices.ContainsFunc(c.states, func(i int32) bool { return g.isMet(c, a, i) }) {
			return false
		}
	}
	return true
}

// actorsIn returns the actors that can take steps from the states of a component, and have to take
// one sooner or later.
func (g *graph[S]) actorsIn(c *component) (all []Actor) {
	for _, i := range c.states {
		for _, m := range g.nextOf(i) {
			if m.actor != Anybody && !slices.Contains(all, m.actor) {
				all = append(all, m.actor)
			}
		}
	}
	slices.Sort(all)
	return all
}

// isMet reports whether a cycle through this state can be fair to an actor: it cannot take a step
// from there, or one that stays in the component.
func (g *graph[S]) isMet(c *component, a Actor, i int32) bool {
	could := false
	for _, m := range g.nextOf(i) {
		if m.actor == a && c.has(m.to) {
			return true
		}
		could = could || m.actor == a
	}
	return !could
}

// storyAround returns a story that leads to the first state of a component, and from there around a
// cycle that is fair to all actors.
func (g *graph[S]) storyAround(c *component) *Story[S] {
	first := c.states[0]
	cycle := []int32{first}
	for _, a := range g.actorsIn(c) {
		if !g.isFairTo(a, cycle) {
			cycle = append(cycle, g.shortestWay(c, cycle[len(cycle)-1], func(m move) bool { return m.actor == a || !g.canStep(a, m.to) })...)
		}
	}
	if last := cycle[len(cycle)-1]; last != first || len(cycle) == 1 {
		cycle = append(cycle, g.shortestWay(c, last, func(m move) bool { return m.to == first })...)
	}
	story := g.storyOf(first, endlessText(len(cycle)-1))
	for k, to := range cycle[1:] {
		story.Steps = append(story.Steps, g.stepTo(cycle[k], to))
	}
	return story
}

// isFairTo reports whether an actor takes one of these steps, or cannot take one in a state among
// them.
func (g *graph[S]) isFairTo(a Actor, way []int32) bool {
	for k, i := range way {
		takes := func(m move) bool { return m.actor == a && k+1 < len(way) && m.to == way[k+1] }
		if !g.canStep(a, i) || slices.ContainsFunc(g.nextOf(i), takes) {
			return true
		}
	}
	return false
}

// canStep reports whether an actor can take a step from a state.
func (g *graph[S]) canStep(a Actor, i int32) bool {
	return slices.ContainsFunc(g.nextOf(i), func(m move) bool { return m.actor == a })
}

// shortestWay returns the states of a shortest way within a component that ends with a certain
// step.
func (g *graph[S]) shortestWay(c *component, from int32, ends func(m move) bool) []int32 {
	parent, ahead := map[int32]int32{}, []int32{from}
	for ; len(ahead) > 0; ahead = ahead[1:] {
		i := ahead[0]
		for _, m := range g.nextOf(i) {
			if !c.has(m.to) {
				continue
			}
			if ends(m) {
				return append(wayBack(parent, from, i), m.to)
			}
			if _, known := parent[m.to]; !known && m.to != from {
				parent[m.to] = i
				ahead = append(ahead, m.to)
			}
		}
	}
	return nil
}

// wayBack returns the states after the first one, up to and with the last one.
func wayBack(parent map[int32]int32, first, last int32) (way []int32) {
	for i := last; i != first; i = parent[i] {
		way = append(way, i)
	}
	slices.Reverse(way)
	return way
}

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
