// SPDX-License-Identifier: Apache-2.0

// Package similar decides which MachineDeployments are alike: their machines differ only in their
// zone. Growth may be split over these and excess spread over them, because a pod fits equally well
// on each.
//
// It compares a [Template] per MachineDeployment: what a fresh machine offers. A template is read
// from a Ready Node that is not in reserve ([Choose]), or estimated from the MachineClass if there
// is none ([FromClass]).
//
// # The pair rule
//
// Two templates are similar (see [Similar]) if all of these hold:
//
//   - Capacity: the same resources, and the same amount of each; memory may differ by
//     [Options.MemoryRatio].
//   - Allocatable: the same resources; each amount may differ by [Options.AllocatableRatio].
//   - Free (allocatable minus the requests of DaemonSets and static pods such as kube-proxy): each
//     amount may differ by [Options.FreeRatio].
//   - Labels: the same, except for those that describe a place or a single machine, and those that
//     the user ignores.
//   - Taints that keep pods away: the same.
//
// Every ratio refers to the larger amount. An amount of zero counts as missing. Amounts are
// compared in thousandths. Except for taints, this is cluster-autoscaler's rule, so both balance
// the same groups. cluster-autoscaler does not compare taints because it checks its waiting pods
// against each group. When growth comes before its pods, there are none to check.
//
// # The groups
//
// Because of the ratios, the pair rule is not transitive: of 100, 96 and 92, the first and the last
// are not within 5 %. [Groups] nevertheless makes a partition that depends only on the values. It
// considers each set of templates that chains of similar ones connect. If all of these are similar
// to each other, they form a group. Otherwise the set is cut at the first resource, in the order
// above and then by name, in which they are too far apart: the largest amount and all amounts
// within the ratio of it form one part, then the next. docs/decisions/0003-similar-groups.md
// explains why.
//
// Templates are first sorted by a key of everything that must be equal. Ratios are compared only
// among templates with the same key, so the time grows with the number of templates, not with the
// number of pairs.
//
// # Laws
//
// The tests cite them by name.
//
//	reflexive   a template is similar to itself
//	symmetric   a is similar to b if and only if b is similar to a
//	partition   every template is in exactly one group
//	order-free  the order of the templates in the input does not matter
//	sound       any two members of a group are similar
//	complete    two similar templates are in different groups only if a chain of similar templates connects one of them
//	            to another template that is not similar to it
//	local       templates that no chain connects to a group do not affect it
//	reference   the groups are those that comparing every pair gives
//	total       no input, even a malformed one, causes a panic or an endless loop
//
// There are three exceptions, each on request: a template that lacks one of
// [Options.BalancingLabels] is similar to none, not even to itself; [Options.PoolLabels] join
// groups whatever their members look like; and estimated templates are first completed, see
// [Completed].
//
// The package keeps no state, reads no clock and logs nothing.
package similar
