// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// fillTier adds n replicas to the lanes of one tier, each between its from and its to. It returns
// the replicas that they could not take, and the largest distance of a lane from its exact share,
// in replicas.
//
// Danger: n and the lanes' from must add up to at most the largest int64. Every call in this
// package ensures that: no tier gets more than the total or the sum of the minima, whichever is
// larger.
func fillTier(lanes []*lane, n int64) (left int64, gap float64) {
	open := make([]*lane, 0, len(lanes))
	left = n
	for _, l := range lanes {
		if l.weight > 0 && l.from < l.to {
			open = append(open, l)
			left -= min(left, l.to-l.from)
		}
	}
	switch {
	case n == 0:
		return 0, 0
	case left > 0:
		for _, l := range open {
			l.at = l.to
		}
		return left, 0
	}
	water := findLevel(open, n)
	settle(open, n-water.raiseLanes(open))
	for _, l := range open {
		gap = max(gap, water.distance(l))
	}
	return 0, gap
}

// settle moves single units until n more are placed, or -n fewer. The lanes must contain exactly a
// front part of the queue, as level leaves them, and still do afterwards.
func settle(lanes []*lane, n int64) {
	if n > 0 {
		add := crowd{step: 1, first: func(a, b *lane) bool { return compareUnits(a, a.at+1, b, b.at+1) < 0 }}
		add.moveTo(lanes, n)
	}
	if n < 0 {
		remove := crowd{step: -1, first: func(a, b *lane) bool { return compareUnits(a, a.at, b, b.at) > 0 }}
		remove.moveTo(lanes, -n)
	}
}

// crowd is a binary heap of the lanes that can still move by step. The first to move is on top.
type crowd struct {
	lanes []*lane
	step  int64
	first func(a, b *lane) bool
}

func (c *crowd) moveTo(lanes []*lane, n int64) {
	c.lanes = make([]*lane, 0, len(lanes))
	for _, l := range lanes {
		if c.hasRoom(l) {
			c.lanes = append(c.lanes, l)
		}
	}
	for i := len(c.lanes)/2 - 1; i >= 0; i-- {
		c.siftDown(i)
	}
	for ; n > 0; n-- {
		top := c.lanes[0]
		top.at += c.step
		if last := len(c.lanes) - 1; !c.hasRoom(top) {
			c.lanes[0], c.lanes = c.lanes[last], c.lanes[:last]
		}
		c.siftDown(0)
	}
}

func (c *crowd) hasRoom(l *lane) bool {
	if c.step > 0 {
		return l.at < l.to
	}
	return l.at > l.from
}

// siftDown moves the lane at i to its place in the heap.
func (c *crowd) siftDown(i int) {
	for {
		child := 2*i + 1
		if child >= len(c.lanes) {
			return
		}
		if right := child + 1; right < len(c.lanes) && c.first(c.lanes[right], c.lanes[child]) {
			child = right
		}
		if !c.first(c.lanes[child], c.lanes[i]) {
			return
		}
		c.lanes[i], c.lanes[child] = c.lanes[child], c.lanes[i]
		i = child
	}
}

// level is the number of replicas per weight, (num >> shift) / den. Lanes that are filled to weight
// times level, within their bounds, contain what is to be placed. The shift keeps den below 2^63 if
// the weights add up to more. The level is then off by one part in 2^62, which moves the cut a
// little and makes settle work a little more.
type level struct {
	num, den uint64
	shift    uint
}

// bend is a height, bound/weight, at which a lane begins to fill or is full.
type bend struct {
	bound int64
	lane  *lane
	full  bool
}

// findLevel visits the bends upwards until the lanes contain n more than their from. Together they
// must have room for n, which is above 0.
func findLevel(lanes []*lane, n int64) level {
	var active weights
	rest := n // sums over the active lanes: n and the from of each
	for _, b := range bendsOf(lanes, n, &active) {
		if active.reaches(b, rest) {
			break
		}
		if b.full {
			rest -= b.bound
			active.remove(b.lane.weight)
			continue
		}
		rest += b.bound
		active.addWeight(b.lane.weight)
	}
	return active.levelFor(rest)
}

// bendsOf returns the bends in rising order. Lanes that fill from zero are active at once; lanes
// that have room for everything are never full before the sweep ends.
func bendsOf(lanes []*lane, n int64, active *weights) []bend {
	var all []bend
	for _, l := range lanes {
		if l.from == 0 {
			active.addWeight(l.weight)
		} else {
			all = append(all, bend{bound: l.from, lane: l})
		}
		if l.to-l.from < n {
			all = append(all, bend{bound: l.to, lane: l, full: true})
		}
	}
	slices.SortFunc(all, func(a, b bend) int {
		aHigh, aLow := bits.Mul64(uint64(a.bound), b.lane.weight)
		bHigh, bLow := bits.Mul64(uint64(b.bound), a.lane.weight)
		return cmp.Or(cmp.Compare(aHigh, bHigh), cmp.Compare(aLow, bLow))
	})
	return all
}

// weights is a sum of weights. It may exceed 64 bits.
type weights struct{ high, low uint64 }

func (w *weights) addWeight(weight uint64) {
	var carry uint64
	w.low, carry = bits.Add64(w.low, weight, 0)
	w.high += carry
}

func (w *weights) remove(weight uint64) {
	var borrow uint64
	w.low, borrow = bits.Sub64(w.low, weight, 0)
	w.high -= borrow
}

// reaches reports whether lanes with these weights contain at least rest at the height of the bend.
func (w *weights) reaches(b bend, rest int64) bool {
	over, high := bits.Mul64(uint64(b.bound), w.high)
	mid, low := bits.Mul64(uint64(b.bound), w.low)
	high, carry := bits.Add64(high, mid, 0)
	restHigh, restLow := bits.Mul64(uint64(rest), b.lane.weight)
	return cmp.Or(cmp.Compare(over+carry, 0), cmp.Compare(high, restHigh), cmp.Compare(low, restLow)) >= 0
}

func (w *weights) levelFor(rest int64) level {
	length := bits.Len64(w.low)
	if w.high > 0 {
		length = 64 + bits.Len64(w.high)
	}
	shift := uint(max(0, length-63))
	return level{num: uint64(rest), den: w.high<<(64-shift) | w.low>>shift, shift: shift}
}

// raiseLanes raises every lane to its share, rounded half up, and returns how many replicas that
// takes. Whatever the level, the lanes then contain a front part of the queue: exactly the units
// with (2k-1)/weight at or below twice the level.
func (v level) raiseLanes(lanes []*lane) int64 {
	var taken int64
	for _, l := range lanes {
		share, part := v.shareOf(l.weight)
		if part >= v.den {
			share++
		}
		l.at = l.clampShare(share)
		taken += l.at - l.from
	}
	return taken
}

// distance returns the distance of a lane from its exact share within its bounds, in replicas.
func (v level) distance(l *lane) float64 {
	share, part := v.shareOf(l.weight)
	whole := l.clampShare(share)
	if uint64(whole) != share || whole == l.to {
		part = 0
	}
	return math.Abs(float64(l.at-whole) - float64(part)/float64(2*v.den))
}

// shareOf returns weight times level: the whole replicas, and the rest in parts of one replica
// divided by 2*den.
func (v level) shareOf(weight uint64) (whole, part uint64) {
	high, low := bits.Mul64(2*v.num, weight)
	high, low = high>>v.shift, high<<(64-v.shift)|low>>v.shift
	if high >= v.den {
		return math.MaxInt64, 0 // 2^63 or more, above any bound
	}
	return bits.Div64(high, low, 2*v.den)
}

func (l *lane) clampShare(share uint64) int64 {
	return int64(min(max(share, uint64(l.from)), uint64(l.to)))
}
