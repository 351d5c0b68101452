// SPDX-License-Identifier: Apache-2.0

// Package distribute decides how many of something go where: pods over Deployments, machines over
// zones, an autoscaler's maximum over clusters. docs/distribute.md has examples.
//
// Each target gets its minimum, and the rest of a total comes from the front of one queue of all
// replicas. The k-th replica of a target comes before another by the first of these that differs:
//
//  1. the lower tier;
//  2. the larger weight / (2k-1), which is Webster's method;
//  3. a replica that its target has now (k <= Current);
//  4. the smaller k;
//  5. a hash of seed and key, if there is a seed;
//  6. the key.
//
// Laws:
//
//	sum         the replicas add up to total + Deficit - Overflow; one of Deficit and Overflow is 0
//	bounds      Min <= replicas <= Max, always
//	house       one more in total gives one target one more and takes from none
//	max-mono    a higher Max never costs that target a replica, nor gives another one more
//	min-mono    the same for Min
//	weight-mono the same for Weight
//	removal     removing a target never costs another one a replica
//	perm        the order of the targets does not matter
//	scale       multiplying all weights by a constant changes nothing
//	idempotent  the result, passed as Current, is the result again
//	tier        a target is above its Min only if all with a weight in lower tiers are full
//	even        targets of equal weight and tier, strictly within bounds, differ by at most one
//	quota       with up to three targets and no bounds, shares are rounded down or up
//	reference   the result is that of placing one replica after the other
//	certificate no target's next replica is ahead of another's last one above its Min
//	order       no two replicas have the same position
//	time        a billion replicas take as long as a thousand
//	overflow    the extremes of int64 neither wrap around nor panic
//	error       malformed input is an error
//	fallback    see WithFallback
//	step        see Step
//	replace     see Replace
package distribute
