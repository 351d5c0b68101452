// SPDX-License-Identifier: Apache-2.0

// Package distribute decides how many of something go where: pods over Deployments, machines over
// zones, the maximum of an autoscaler over clusters, a surge over sets. No other code in this
// module splits a number.
//
// # The rule
//
// A unit is one replica of one target: the k-th replica of target i. All units are in one queue.
// For a total of N, each target gets its minimum, and the remaining units come from the front of
// the queue. The order of two units is decided by the first of these that differs:
//
//  1. the lower tier;
//  2. the larger weight / (2k-1), which is Webster's method, compared exactly;
//  3. a unit that its target has now (k <= Current), before one that would have to be created;
//  4. the smaller k, so that a tie favors the target that has fewer;
//  5. a hash of seed and key, if there is a seed;
//  6. the key.
//
// A larger total takes more of the same queue, so scaling up by one never takes a replica from any
// target. A rule that always comes as close as possible to the shares cannot promise that: with
// weights 3/3/1, the closest result for 3 is 1/1/1, and for 4 it is 2/2/0.
//
// Bounds clip the proportional result; minima are not reserved before it. A minimum that a target
// would reach anyway changes nothing.
//
// The queue is never walked. The level at which the exact shares of all targets add up to N shows
// where to cut the queue, to within half a replica per target; a heap settles the rest. The time
// depends on the number of targets, not on the number of replicas.
//
// # Laws
//
// The tests cite them by name.
//
//	sum         the replicas add up to total + Deficit - Overflow, and Deficit and Overflow are never both positive
//	bounds      Min <= replicas <= Max, always
//	house       one more in total gives one target one more and takes from none
//	max-mono    a higher Max never costs that target a replica, nor gives another one more
//	min-mono    a higher Min never costs that target a replica, nor gives another one more
//	weight-mono a higher Weight never costs that target a replica, nor gives another one more
//	removal     a target that is removed never costs another one a replica
//	perm        the order of the targets in the input does not matter
//	scale       multiplying all weights by a constant does not change the result
//	idempotent  the result, passed as Current, is the result again
//	tier        a target is above its Min only if all targets with a weight in lower tiers are at their Max
//	even        with equal weights, in one tier, strictly within bounds, targets differ by at most one
//	quota       with up to three targets and no bounds, each share is rounded down or up, never further
//	reference   the result is the same as placing one replica after the other
//	certificate no target's next unit is ahead of another target's last one above its Min
//	order       no two units have the same position
//	time        a billion replicas take as long as a thousand
//	overflow    the extremes of int64 neither wrap around nor cause a panic
//	error       malformed input is an error and gives no result
//
//	fallback    see WithFallback
//	step        see Step
//	replace     see Replace
//
// The package keeps no state, reads no clock and logs nothing.
package distribute
