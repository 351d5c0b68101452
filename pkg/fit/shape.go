// SPDX-License-Identifier: Apache-2.0

package fit

import "cmp"

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

// total returns the number of pods that exist or will be created.
func (s *shape) total() int { return len(s.pods) + s.uncreated }

func (s *shape) nextPod() *Pod {
	switch {
	case s.placed < len(s.pods):
		return s.pods[s.placed]
	case s.placed < s.total():
		return s.like
	}
	return nil
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
