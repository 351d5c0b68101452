// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"hash/maphash"
	"slices"
)

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
	seed  maphash.Seed
	slots []slot
	used  int
}

// slot contains the number of a state, from 1, and its hash.
type slot struct {
	number int32
	hash   uint32
}

func newTable[S comparable]() table[S] {
	return table[S]{seed: maphash.MakeSeed(), slots: make([]slot, 1<<10)}
}

func (x *table[S]) hashOf(s S) uint32 { return uint32(maphash.Comparable(x.seed, s)) }

// numberOf returns the number of a state, and whether it was known. A new state gets the next number.
func (x *table[S]) numberOf(s S, hash uint32, states *list[S]) (number int32, known bool) {
	if 4*x.used > 3*len(x.slots) {
		x.doubleSize()
	}
	at := x.slotFor(hash, func(number int32) bool { return *states.element(number) == s })
	if x.slots[at].number > 0 {
		return x.slots[at].number - 1, true
	}
	x.slots[at] = slot{int32(states.n) + 1, hash}
	x.used++
	return int32(states.n), false
}

// slotFor returns the slot of a state, or the free one where it belongs. The function reports whether
// the state of a number is the same.
func (x *table[S]) slotFor(hash uint32, same func(number int32) bool) uint32 {
	mask := uint32(len(x.slots) - 1)
	at := hash & mask
	for s := x.slots[at]; s.number > 0 && (s.hash != hash || !same(s.number-1)); s = x.slots[at] {
		at = (at + 1) & mask
	}
	return at
}

func (x *table[S]) doubleSize() {
	old := x.slots
	x.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.number > 0 {
			x.slots[x.slotFor(s.hash, func(int32) bool { return false })] = s
		}
	}
}
