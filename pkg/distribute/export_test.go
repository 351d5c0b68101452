// SPDX-License-Identifier: Apache-2.0

package distribute

import "slices"

// Hash is the tie hash.
var Hash = hashKey

// Order returns the comparison of unit k of targets[i] with unit m of targets[j], tiers left aside.
func Order(targets []Target, seed uint64) func(i int, k int64, j int, m int64) int {
	lanes, err := lineUp(targets, seed)
	if err != nil {
		panic(err)
	}
	slices.SortFunc(lanes, func(a, b *lane) int { return a.target - b.target })
	return func(i int, k int64, j int, m int64) int { return compareUnits(lanes[i], k, lanes[j], m) }
}

// Corrections is how many single replicas are moved after the level is known: above 0 added, below 0 taken away. The
// targets must be of one tier, and have weight and room for more than the total.
func Corrections(total int64, targets []Target) int64 {
	lanes, err := lineUp(targets, 0)
	if err != nil {
		panic(err)
	}
	for _, l := range lanes {
		total -= l.from
	}
	if total <= 0 {
		return 0
	}
	water := findLevel(lanes, total)
	return total - water.raiseLanes(lanes)
}
