// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"hash/maphash"
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
	// Actor takes the step.
	Actor Actor
}

// Actor is a process, a store or a cloud. One that could take a step all the time takes one sooner
// or later: it gets its turn again and again, and a store catches up.
type Actor uint8

// Anybody is promised no turn.
const Anybody Actor = 0

// Model is what a search explores. Its methods are called from several goroutines.
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
	// Line is a line of the table in search_test.go that replays it as a test.
	Line string
}

// String returns the story, one line for each step.
func (s *Story[S]) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", s.Begin)
	for i, step := range s.Steps {
		fmt.Fprintf(&b, "%3d. %s\n     %v\n", i+1, step.What, step.To)
	}
	fmt.Fprintf(&b, "%s\n", s.Wrong)
	if s.Line != "" {
		fmt.Fprintf(&b, "Replay it with this line in test/explore/search_test.go:\n%s\n", s.Line)
	}
	return b.String()
}

// Search visits every state that a model can reach, the nearest first, until a step breaks a law or
// there are more than most states. Then it considers the steps that are not faults: in any order
// that is fair to all actors, they must end in a state at rest.
func Search[S comparable](m Model[S], most int) Result[S] {
	g := newGraph(m)
	for _, s := range m.Begin() {
		g.addState(s, g.index.hashOf(s), -1)
	}
	story := g.visit(most)
	r := Result[S]{States: g.states.n, Edges: g.edges, Exhausted: g.states.n <= most, Story: story}
	if r.Exhausted && story == nil {
		r.Story = g.endless()
	}
	if r.Story != nil {
		r.Story.Line = replayLine(m, r.Story)
	}
	return r
}

// graph contains what has been visited. States have numbers, in the order in which they were found.
type graph[S comparable] struct {
	model  Model[S]
	states list[S]
	parent []int32
	index  table[S]
	// next contains the steps of each state, without faults; those of state i end at ends[i].
	next  []move
	ends  []int
	edges int
}

// move is a step to the state of a number.
type move struct {
	to    int32
	actor Actor
}

func newGraph[S comparable](m Model[S]) *graph[S] {
	return &graph[S]{model: m, index: newTable[S]()}
}

func (g *graph[S]) addState(s S, hash uint32, parent int32) int32 {
	i, known := g.index.numberOf(s, hash, &g.states)
	if !known {
		g.states.push(s)
		g.parent = append(g.parent, parent)
	}
	return i
}

// nextOf returns the steps of a state, without faults.
func (g *graph[S]) nextOf(i int32) []move {
	begin := 0
	if i > 0 {
		begin = g.ends[i-1]
	}
	return g.next[begin:g.ends[i]]
}

// visit takes all steps of all states, and returns a story if one of them breaks a law.
func (g *graph[S]) visit(most int) *Story[S] {
	var ahead []<-chan []expansion[S]
	begun, done := 0, 0
	for done < g.states.n && g.states.n <= most {
		for len(ahead) < workers && begun < g.states.n {
			block := g.states.blockFrom(begun)
			ahead, begun = append(ahead, expandBlock(g.model, block, g.index.hashOf)), begun+len(block)
		}
		for _, e := range <-ahead[0] {
			if story := g.add(int32(done), e); story != nil {
				return story
			}
			done++
		}
		ahead = ahead[1:]
	}
	return nil
}

// add adds the steps of a state, and returns a story if one of them breaks a law.
func (g *graph[S]) add(i int32, e expansion[S]) *Story[S] {
	for k, step := range e.steps {
		if step.Broken != "" {
			story := g.storyOf(i, step.Broken)
			story.Steps = append(story.Steps, step)
			return story
		}
		g.edges++
		if j := g.addState(step.To, e.hashes[k], i); !step.Fault {
			g.next = append(g.next, move{to: j, actor: step.Actor})
		}
	}
	g.ends = append(g.ends, len(g.next))
	if e.wrong != "" {
		return g.storyOf(i, e.wrong)
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
	story := &Story[S]{Wrong: wrong, Begin: *g.states.element(way[0])}
	for k := range len(way) - 1 {
		story.Steps = append(story.Steps, g.stepTo(way[k], way[k+1]))
	}
	return story
}

func (g *graph[S]) stepTo(from, to int32) Step[S] {
	steps, end := g.model.Steps(*g.states.element(from)), *g.states.element(to)
	return steps[slices.IndexFunc(steps, func(s Step[S]) bool { return s.To == end })]
}

const (
	// workers is how many blocks of states are expanded at the same time or wait to be added.
	workers = 4
	// blockSize is the number of states of a block.
	blockSize = 256
)

// expansion is what can happen in a state.
type expansion[S comparable] struct {
	steps []Step[S]
	// hashes are those of the states that the steps lead to.
	hashes []uint32
	// wrong is what is wrong with the state, if only faults can change it.
	wrong string
}

// expandBlock finds the steps of each state of a block.
func expandBlock[S comparable](m Model[S], block []S, hash func(S) uint32) <-chan []expansion[S] {
	done := make(chan []expansion[S], 1)
	go func() {
		all := make([]expansion[S], len(block))
		for i, s := range block {
			all[i] = expand(m, s)
			all[i].hashAll(hash)
		}
		done <- all
	}()
	return done
}

func expand[S comparable](m Model[S], s S) expansion[S] {
	e := expansion[S]{steps: slices.DeleteFunc(m.Steps(s), func(step Step[S]) bool { return step.To == s && step.Broken == "" })}
	if !slices.ContainsFunc(e.steps, func(step Step[S]) bool { return !step.Fault }) {
		e.wrong = m.Rest(s)
	}
	return e
}

func (e *expansion[S]) hashAll(hash func(S) uint32) {
	e.hashes = make([]uint32, len(e.steps))
	for i, step := range e.steps {
		e.hashes[i] = hash(step.To)
	}
}

// list is a slice for millions of elements, which are not copied when it grows.
type list[T any] struct {
	chunks [][]T
	n      int
}

// chunkSize is the number of elements that are allocated together.
const chunkSize = 1 << 14

func (l *list[T]) push(x T) {
	if l.n%chunkSize == 0 {
		l.chunks = append(l.chunks, make([]T, 0, chunkSize))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = append(*last, x)
	l.n++
}

func (l *list[T]) element(i int32) *T { return &l.chunks[i/chunkSize][i%chunkSize] }

// blockFrom returns elements from one on, at most [blockSize].
func (l *list[T]) blockFrom(from int) []T {
	rest := l.chunks[from/chunkSize][from%chunkSize:]
	return rest[:min(blockSize, len(rest))]
}

// table finds the number of a state: a hash table without the states, so that it needs little memory
// for millions of them. Its size is a power of two. States are compared, not only their hashes.
type table[S comparable] struct {
	seed    maphash.Seed
	entries []entry
	used    int
}

// entry contains the number of a state, from 1, and its hash.
type entry struct {
	number int32
	hash   uint32
}

func newTable[S comparable]() table[S] {
	return table[S]{seed: maphash.MakeSeed(), entries: make([]entry, 1<<10)}
}

func (x *table[S]) hashOf(s S) uint32 { return uint32(maphash.Comparable(x.seed, s)) }

// numberOf returns the number of a state, and whether it was known. A new state gets the next number.
func (x *table[S]) numberOf(s S, hash uint32, states *list[S]) (number int32, known bool) {
	if 4*x.used > 3*len(x.entries) {
		x.doubleSize()
	}
	at := x.slotFor(hash, func(number int32) bool { return *states.element(number) == s })
	if x.entries[at].number > 0 {
		return x.entries[at].number - 1, true
	}
	x.entries[at] = entry{int32(states.n) + 1, hash}
	x.used++
	return int32(states.n), false
}

// slotFor returns the entry of a state, or the free one where it belongs. The function reports whether
// the state of a number is the same.
func (x *table[S]) slotFor(hash uint32, same func(number int32) bool) uint32 {
	mask := uint32(len(x.entries) - 1)
	at := hash & mask
	for s := x.entries[at]; s.number > 0 && (s.hash != hash || !same(s.number-1)); s = x.entries[at] {
		at = (at + 1) & mask
	}
	return at
}

func (x *table[S]) doubleSize() {
	old := x.entries
	x.entries = make([]entry, 2*len(old))
	for _, s := range old {
		if s.number > 0 {
			x.entries[x.slotFor(s.hash, func(int32) bool { return false })] = s
		}
	}
}
