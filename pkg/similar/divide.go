// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"slices"
)

// point is a template among those with the same key. It has one coordinate for each amount that a
// ratio applies to.
type point struct {
	member int
	at     []float64
}

// space contains the ratio of each coordinate.
type space []float64

// spaceOf returns the space of points with the same key: memory, then the allocatable resources,
// then the free part of them.
func (o Options) spaceOf(points []point) space {
	s := make(space, len(points[0].at))
	for i := range s {
		switch {
		case i == 0:
			s[i] = o.MemoryRatio
		case i <= (len(s)-1)/2:
			s[i] = o.AllocatableRatio
		default:
			s[i] = o.FreeRatio
		}
	}
	return s
}

// divide partitions points into parts in which any two points are similar. It reorders the points.
func (s space) divide(points []point) [][]int {
	axis := s.firstLooseAxis(points)
	if axis < 0 {
		part := make([]int, len(points))
		for i, p := range points {
			part[i] = p.member
		}
		return [][]int{part}
	}
	slices.SortFunc(points, func(p, q point) int { return cmp.Compare(q.at[axis], p.at[axis]) })
	// Gaps are found in one pass, chains only by comparisons, so gaps come first.
	pieces := s.splitAtGaps(points, axis)
	if len(pieces) == 1 {
		pieces = s.chains(points, axis)
	}
	if len(pieces) == 1 {
		pieces = s.windows(points, axis)
	}
	var parts [][]int
	for _, piece := range pieces {
		parts = append(parts, s.divide(piece)...)
	}
	return parts
}

// firstLooseAxis returns the first axis along which some points are not close to each other, or -1.
func (s space) firstLooseAxis(points []point) int {
	for axis := range s {
		least, most := points[0].at[axis], points[0].at[axis]
		for _, p := range points[1:] {
			least, most = min(least, p.at[axis]), max(most, p.at[axis])
		}
		if !within(least, most, s[axis]) {
			return axis
		}
	}
	return -1
}

// splitAtGaps cuts sorted points where two neighbors are too far apart: no point on one side is
// similar to any on the other.
func (s space) splitAtGaps(points []point, axis int) [][]point {
	return splitWhere(points, func(_, before, next point) bool { return !within(before.at[axis], next.at[axis], s[axis]) })
}

// windows cuts sorted points from the largest down: the largest and all that are close to it form a
// part, and so on.
func (s space) windows(points []point, axis int) [][]point {
	return splitWhere(points, func(first, _, next point) bool { return !within(first.at[axis], next.at[axis], s[axis]) })
}

// splitWhere begins a new piece where here returns true for the first point of the piece, the point
// before, and the next one.
func splitWhere(points []point, here func(first, before, next point) bool) [][]point {
	var pieces [][]point
	begin := 0
	for i := 1; i < len(points); i++ {
		if here(points[begin], points[i-1], points[i]) {
			pieces = append(pieces, points[begin:i])
			begin = i
		}
	}
	return append(pieces, points[begin:])
}

// chains returns the parts that chains of similar points connect. It compares only points that are
// close along the axis they are sorted by, neighbors first: in one long chain, they connect all
// points, and no more comparisons are needed.
func (s space) chains(points []point, axis int) [][]point {
	connected, left := newForest(len(points)), len(points)
	for step, near := 1, true; near && left > 1; step++ {
		near = false
		for i := range len(points) - step {
			p, q := points[i], points[i+step]
			if !within(p.at[axis], q.at[axis], s[axis]) {
				continue
			}
			near = true
			if connected.rootOf(i) != connected.rootOf(i+step) && s.similar(p, q) {
				connected.union(i, i+step)
				left--
			}
		}
	}
	var pieces [][]point
	for _, tree := range connected.sets() {
		piece := make([]point, len(tree))
		for i, at := range tree {
			piece[i] = points[at]
		}
		pieces = append(pieces, piece)
	}
	return pieces
}

func (s space) similar(p, q point) bool {
	for axis, ratio := range s {
		if !within(p.at[axis], q.at[axis], ratio) {
			return false
		}
	}
	return true
}

// forest joins numbers into sets.
type forest []int

func newForest(n int) forest {
	f := make(forest, n)
	for i := range f {
		f[i] = i
	}
	return f
}

func (f forest) rootOf(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

func (f forest) union(i, j int) { f[f.rootOf(j)] = f.rootOf(i) }

// sets returns the sets, in the order of their first numbers.
func (f forest) sets() [][]int {
	var trees [][]int
	number := map[int]int{}
	for i := range f {
		n, known := number[f.rootOf(i)]
		if !known {
			n = len(trees)
			number[f.rootOf(i)] = n
			trees = append(trees, nil)
		}
		trees[n] = append(trees[n], i)
	}
	return trees
}
