// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

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
