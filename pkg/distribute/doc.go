// SPDX-License-Identifier: Apache-2.0

// Package distribute decides how many of something go where: pods over Deployments, machines over zones, the maximum
// of an autoscaler over clusters, a surge over sets. It is the only rule in this module that splits a number.
//
// # The rule
//
// A unit is one replica of one target: the k-th of target i. All units stand in one queue, and a total of N takes the
// units up to each target's minimum and then, from the front of the queue, as many as remain. The first difference
// decides which of two units stands further ahead:
//
//  1. the lower tier;
//  2. the larger weight / (2k-1), which is Webster's method, compared exactly;
//  3. a unit its target has now (k <= Current) before one it would have to create;
//  4. the smaller k, so that a tie helps the target that has fewer;
//  5. a hash of seed and key, where a seed is given;
//  6. the key.
//
// Because a larger total takes a longer piece of the same queue, scaling up by one never takes a replica away from
// anybody. No rule that always meets the shares as closely as possible can promise that: with weights 3/3/1 the
// closest answer for 3 is 1/1/1 and for 4 it is 2/2/0.
//
// Bounds clip the proportional answer; they are not handed out before it. A minimum that a target would have reached
// anyway changes nothing.
//
// The queue is never walked. The water level at which the targets' exact shares add up to N says where the cut must be
// to within half a replica per target, and a heap settles the rest: the time depends on the number of targets, not on
// the number of replicas.
//
// # Laws
//
// The tests cite them by name.
//
//	sum         the replicas add up to total + Deficit - Overflow, and Deficit and Overflow are never both positive
//	bounds      Min <= replicas <= Max, always
//	house       one more in total gives one target one more and takes from nobody
//	max-mono    a higher Max never costs that target a replica, nor gives another one
//	min-mono    a higher Min never costs that target a replica, nor gives another one
//	weight-mono a higher Weight never costs that target a replica, nor gives another one
//	removal     a target that goes away never costs another a replica
//	perm        the order of the targets in the slice is irrelevant
//	scale       all weights times a constant give the same answer
//	idempotent  the answer, fed back as Current, is the answer
//	tier        above its Min is a target only if all that have weight in lower tiers are at their Max
//	even        equal weights, one tier, strictly within bounds: they differ by at most one
//	quota       up to three targets without bounds: each share rounded down or up, never further away
//	reference   it is what placing one replica after the other gives
//	certificate no target's next unit stands ahead of another target's last one above its Min
//	order       no two units stand at the same place
//	time        a billion replicas take as long as a thousand
//	overflow    the extremes of int64 neither wrap nor panic
//	error       what is malformed is an error and gives no answer
//
//	fallback    see WithFallback
//	step        see Step
//
// The package keeps no state, reads no clock and logs nothing.
package distribute
