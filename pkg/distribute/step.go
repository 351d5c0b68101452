// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"fmt"
	"math"
	"slices"
)

// Step returns the next safe counts on the way from cur to goal; ready is how many of each target's replicas are ready
// now. want is the capacity to protect: the total, or what of goal is usable if that is less. It is not the sum of goal,
// which under fallback counts replicas that will never be ready. surge is how many replicas may exist beyond the sum of
// goal, unavailable how many ready ones may be missing of want; one of the two must be above 0, or nothing could move.
// The four slices run over the same targets; where claims are equal, earlier ones move first.
//
// With ready(v) for the sum of min(ready, v) over all targets, each step keeps
//
//	ceiling:   sum(next) <= max(sum(cur), sum(goal) + surge);
//	floor:     ready(next) >= min(ready(cur), want - unavailable);
//	direction: every count moves towards its goal or stays.
//
// Replicas that are not ready and above the goal go first and free of charge, since replica sets delete those first. For
// a target that may lose any replica, ready or not, pass its cur as ready and add the difference to want.
//
// Give the observed readiness to the next step, never what the last one asked for; then the goal is reached.
func Step(cur, ready, goal []int64, want, surge, unavailable int64) ([]int64, error) {
	if err := checkStep(cur, ready, goal, want, surge, unavailable); err != nil {
		return nil, err
	}
	n := len(cur)
	up, unready, down := make([]int64, n), make([]int64, n), make([]int64, n)
	var available int64
	for i := range n {
		up[i] = max(0, goal[i]-cur[i])
		unready[i] = min(max(0, cur[i]-goal[i]), max(0, cur[i]-ready[i]))
		down[i] = max(0, cur[i]-goal[i]) - unready[i]
		available += min(ready[i], cur[i])
	}
	up = portion(up, addSaturating(sumCounts(goal), surge)-sumCounts(cur))
	down = portion(down, available-max(0, want-unavailable))
	next := slices.Clone(cur)
	for i := range next {
		next[i] += up[i] - unready[i] - down[i]
	}
	return next, nil
}

// portion spreads n over the gaps in proportion to their size, at most what each is.
func portion(gaps []int64, n int64) []int64 {
	all, lanes := make([]lane, len(gaps)), make([]*lane, len(gaps))
	for i, g := range gaps {
		all[i] = lane{rank: i, weight: uint64(g), to: g}
		lanes[i] = &all[i]
	}
	fillTier(lanes, max(0, n))
	for i, l := range lanes {
		gaps[i] = l.at
	}
	return gaps
}

func checkStep(cur, ready, goal []int64, want, surge, unavailable int64) error {
	if len(ready) != len(cur) || len(goal) != len(cur) {
		return fmt.Errorf("step: %d current, %d ready and %d goal counts: %w", len(cur), len(ready), len(goal), ErrMalformed)
	}
	if surge < 0 || unavailable < 0 || surge == 0 && unavailable == 0 {
		return fmt.Errorf("step: surge %d and unavailable %d: one must be above 0, none below: %w", surge, unavailable, ErrMalformed)
	}
	for _, counts := range [][]int64{cur, ready, goal, {want}} {
		var total int64
		for _, c := range counts {
			if c < 0 || c > math.MaxInt64-total {
				return fmt.Errorf("step: a count of %d is below 0 or exceeds int64 in the sum: %w", c, ErrMalformed)
			}
			total += c
		}
	}
	return nil
}

// addSaturating adds two numbers that are not negative, up to the largest int64.
func addSaturating(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
