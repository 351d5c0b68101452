// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
)

// Step is one thing that can happen in a state.
type Step[S comparable] struct {
	// What describes it in words.
	What string
	To   S
	// Broken is the law that the step breaks; empty if it breaks none.
	Broken string
	// Fault reports whether the step need not happen: a failure, or a decision of a user or another
	// controller.
	Fault bool
}

// Model is what a search explores.
type Model[S comparable] interface {
	// Begin returns the initial states.
	Begin() []S
	// Steps returns everything that can happen next. A step to the same state is not a step.
	Steps(s S) []Step[S]
	// Rest returns what is wrong with a state that only a fault can change; empty if nothing is.
	Rest(s S) string
}

// Result is the result of a search.
type Result[S comparable] struct {
	States, Edges int
	// Exhausted reports whether every state was visited, because there were not too many.
	Exhausted bool
	// Story is the shortest path to the first problem; nil if there is none.
	Story *Story[S]
}

// Story is a path through a model.
type Story[S comparable] struct {
	Wrong string
	Begin S
	Steps []Step[S]
}

// String returns the story, one line for each step.
func (s *Story[S]) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", s.Begin)
	for i, step := range s.Steps {
		fmt.Fprintf(&b, "%3d. %s\n     %v\n", i+1, step.What, step.To)
	}
	fmt.Fprintf(&b, "%s\n", s.Wrong)
	return b.String()
}

// Search visits every state that a model can reach, the nearest first, until a step breaks a law or
// there are more than most states. Then it considers the steps that are not faults: in any order,
// they must end in a state at rest.
func Search[S comparable](m Model[S], most int) Result[S] {
	g := &graph[S]{model: m, index: map[S]int32{}}
	for _, s := range m.Begin() {
		g.addState(s, -1)
	}
	for i := 0; i < len(g.states) && len(g.states) <= most; i++ {
		if wrong := g.expand(int32(i)); wrong != nil {
			return Result[S]{States: len(g.states), Edges: g.edges, Story: wrong}
		}
	}
	r := Result[S]{States: len(g.states), Edges: g.edges, Exhausted: len(g.states) <= most}
	if r.Exhausted {
		r.Story = g.endless()
	}
	return r
}

// graph contains what has been visited. States have numbers, in the order in which they were found.
type graph[S comparable] struct {
	model  Model[S]
	states []S
	parent []int32
	index  map[S]int32
	// next contains the states that the steps of each state lead to, without faults.
	next  [][]int32
	edges int
}

func (g *graph[S]) addState(s S, parent int32) int32 {
	if i, known := g.index[s]; known {
		return i
	}
	i := int32(len(g.states))
	g.index[s] = i
	g.states, g.parent = append(g.states, s), append(g.parent, parent)
	return i
}

// expand takes all steps of a state, and returns a story if one of them breaks a law.
func (g *graph[S]) expand(i int32) *Story[S] {
	s := g.states[i]
	var next []int32
	for _, step := range g.model.Steps(s) {
		if step.Broken != "" {
			story := g.storyOf(i, step.Broken)
			story.Steps = append(story.Steps, step)
			return story
		}
		if step.To == s {
			continue
		}
		g.edges++
		if j := g.addState(step.To, i); !step.Fault {
			next = append(next, j)
		}
	}
	g.next = append(g.next, next)
	if len(next) == 0 {
		if wrong := g.model.Rest(s); wrong != "" {
			return g.storyOf(i, wrong)
		}
	}
	return nil
}

// storyOf returns the shortest path to a state. It finds the steps again by their results.
func (g *graph[S]) storyOf(i int32, wrong string) *Story[S] {
	var way []int32
	for ; i >= 0; i = g.parent[i] {
		way = append(way, i)
	}
	slices.Reverse(way)
	story := &Story[S]{Wrong: wrong, Begin: g.states[way[0]]}
	for k := range len(way) - 1 {
		story.Steps = append(story.Steps, g.stepTo(way[k], way[k+1]))
	}
	return story
}

func (g *graph[S]) stepTo(from, to int32) Step[S] {
	steps := g.model.Steps(g.states[from])
	return steps[slices.IndexFunc(steps, func(s Step[S]) bool { return s.To == g.states[to] })]
}

// endless returns a story of steps that repeat forever without a fault; nil if all paths end. It
// removes final states until only cycles and the paths to them remain.
func (g *graph[S]) endless() *Story[S] {
	left, before := make([]int32, len(g.states)), make([][]int32, len(g.states))
	var ended []int32
	for i, next := range g.next {
		left[i] = int32(len(next))
		if len(next) == 0 {
			ended = append(ended, int32(i))
		}
		for _, j := range next {
			before[j] = append(before[j], int32(i))
		}
	}
	for len(ended) > 0 {
		i := ended[len(ended)-1]
		ended = ended[:len(ended)-1]
		for _, j := range before[i] {
			if left[j]--; left[j] == 0 {
				ended = append(ended, j)
			}
		}
	}
	first := slices.IndexFunc(left, func(n int32) bool { return n > 0 })
	if first < 0 {
		return nil
	}
	return g.cycleFrom(int32(first), left)
}

// cycleFrom continues from a state that leads to a cycle until a state repeats.
func (g *graph[S]) cycleFrom(i int32, left []int32) *Story[S] {
	seen, way := map[int32]int{}, []int32{}
	for {
		if at, known := seen[i]; known {
			story := g.storyOf(way[at], "")
			story.Wrong = fmt.Sprintf("the last %d steps repeat for ever, though nothing fails", len(way)-at)
			for k := at; k < len(way); k++ {
				to := i
				if k+1 < len(way) {
					to = way[k+1]
				}
				story.Steps = append(story.Steps, g.stepTo(way[k], to))
			}
			return story
		}
		seen[i] = len(way)
		way = append(way, i)
		i = g.next[i][slices.IndexFunc(g.next[i], func(j int32) bool { return left[j] > 0 })]
	}
}
