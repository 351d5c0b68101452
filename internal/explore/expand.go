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
	// wrong is what is wrong with the state, if only faults can change it.
	wrong string
}

// expandBlock finds the steps of each state of a block.
func expandBlock[S comparable](m Model[S], block []S) <-chan []expansion[S] {
	done := make(chan []expansion[S], 1)
	go func() {
		all := make([]expansion[S], len(block))
		for i, s := range block {
			all[i] = expand(m, s)
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

// table finds the number of a state: a hash table that contains only numbers, so that it needs
// little memory for millions of states. Its size is a power of two. States are compared, not only
// their hashes.
type table[S comparable] struct {
	seed  maphash.Seed
	slots []int32
	used  int
}

func newTable[S comparable]() table[S] {
	return table[S]{seed: maphash.MakeSeed(), slots: make([]int32, 1<<10)}
}

// find returns the number of a state, and whether it was known. A new state gets the next number.
func (x *table[S]) find(s S, states []S) (number int32, known bool) {
	if 4*x.used > 3*len(x.slots) {
		x.grow(states)
	}
	at := x.place(s, states)
	if x.slots[at] > 0 {
		return x.slots[at] - 1, true
	}
	x.slots[at] = int32(len(states)) + 1
	x.used++
	return int32(len(states)), false
}

// place returns the slot of a state, or the free one where it belongs.
func (x *table[S]) place(s S, states []S) uint64 {
	mask := uint64(len(x.slots) - 1)
	at := maphash.Comparable(x.seed, s) & mask
	for x.slots[at] > 0 && states[x.slots[at]-1] != s {
		at = (at + 1) & mask
	}
	return at
}

func (x *table[S]) grow(states []S) {
	x.slots = make([]int32, 2*len(x.slots))
	for i, s := range states {
		x.slots[x.place(s, states[:i])] = int32(i) + 1
	}
}
