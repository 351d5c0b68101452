// SPDX-License-Identifier: Apache-2.0

package fit

import "cmp"

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
