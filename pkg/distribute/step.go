// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"fmt"
	"math"
	"slices"
)

// Step returns the next safe counts on the way from cur to goal. ready contains how many of each
// target's replicas are ready now. want is the capacity to protect: the total, or what is usable of
// goal if that is less. It is not the sum of goal, which, with fallback, includes replicas that
// will never be ready. surge is how many replicas may exist beyond the sum of goal, and unavailable
// how many ready ones may be missing from want; one of the two must be above 0, or nothing could
// move. The four slices are parallel; if claims are equal, earlier targets move first.
//
// With ready(v) for the sum of min(ready, v) over all targets, each step keeps
//
//	ceiling:   sum(next) <= max(sum(cur), sum(goal) + surge);
//	floor:     ready(next) >= min(ready(cur), want - unavailable);
//	direction: every count moves towards its goal or stays.
//
// Replicas that are above the goal and not ready are removed first and are not counted, because
// ReplicaSets delete them first. If a target may lose any replica, ready or not, pass its cur as
// ready and add the difference to want.
//
// The next step must get the observed readiness, not what the last step requested. Then the goal is
// reached.
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

// Replace returns the next safe counts on the way from cur to what [WithFallback] has placed for
// these targets: no ready replica goes before one that replaces it is ready. Usable of each Health
// is how many replicas are ready, also if the target is not blocked.
//
// With ready(v) for the sum of min(Usable, Max, v) over all targets, each step keeps
//
//	room:      no target gets more than Max;
//	floor:     ready(next) >= min(ready(cur), total, usable), where usable is what can become ready of goal;
//	ceiling:   sum(next) <= max(sum(cur), sum(goal) + max(1, total)).
//
// Max is never exceeded, not even in between, so a replica that has no room replaces none.
func Replace(total int64, cur, goal []int64, targets []Target, health []Health) ([]int64, error) {
	if len(cur) != len(targets) || len(health) != len(targets) || len(goal) != len(targets) {
		return nil, fmt.Errorf("replace: %d current and %d goal counts, health of %d, for %d targets: %w", len(cur), len(goal), len(health), len(targets), ErrMalformed)
	}
	var usable int64
	within, ready := make([]int64, len(cur)), make([]int64, len(cur))
	for i, t := range targets {
		within[i], ready[i] = min(cur[i], t.limit()), health[i].Usable
		if health[i].Blocked {
			usable = addSaturating(usable, min(goal[i], health[i].Usable))
		} else {
			usable = addSaturating(usable, goal[i])
		}
	}
	return Step(within, ready, goal, min(total, usable), max(1, total), 0)
}

// limit returns Max, where that is a number.
func (t Target) limit() int64 {
	if t.Max == Unbounded {
		return math.MaxInt64
	}
	return t.Max
}

// portion spreads n over the gaps in proportion to their sizes, to each at most its size.
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

// addSaturating adds two numbers that are not negative. The result is at most the largest int64.
func addSaturating(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
