// SPDX-License-Identifier: Apache-2.0

// Package similar decides which MachineDeployments are alike: those whose machines differ in nothing but the place where
// they stand. Growth may be split over them and excess spread over them, because a pod finds the same room on each.
//
// What is compared is a [Template] per MachineDeployment: what a fresh machine of it offers. It is read from a Ready node
// that is no reserve ([Choose]), or estimated from the MachineClass where there is none ([FromClass]).
//
// # The pair rule
//
// Two templates are similar, see [Similar], where all of these hold:
//
//   - Capacity has the same resources and the same amount of each; memory may differ by [Options.MemoryRatio].
//   - Allocatable has the same resources; each may differ by [Options.AllocatableRatio].
//   - Free, which is allocatable minus what DaemonSets and static pods (kube-proxy) request, may differ by
//     [Options.FreeRatio].
//   - Labels are the same, but for those that name a place or a single machine, and those that the user ignores.
//   - Taints that keep pods away are the same.
//
// Every ratio is of the larger amount. An amount of zero is the same as none. Amounts are compared in thousandths. This is
// cluster-autoscaler's rule, so that what it balances when it scales up and what is balanced here are the same groups; taints
// it leaves to the scheduler's predicates for the pods that wait, of which there are none where growth comes before its pods.
//
// # The groups
//
// Because of the ratios the pair rule is not transitive: of 100, 96 and 92 the first and the last are not within 5 %.
// [Groups] makes a partition of it nevertheless, in a way that depends on the values alone. What a chain of similar
// templates connects is looked at by itself. Where all in it are similar to each other, it is a group. Otherwise it is cut
// at the first resource, in the order above and by name, in which they are too far apart, from the largest amount down:
// the largest and all within the ratio of it, then the next. docs/decisions/0003-similar-groups.md says why.
//
// Templates are first gathered by a key of all that must be equal; ratios are looked at only among those with the same
// key. So the time grows with the number of templates, not with the number of pairs.
//
// # Laws
//
// The tests cite them by name.
//
//	reflexive   a template is similar to itself
//	symmetric   a is similar to b if and only if b is to a
//	partition   every template is in exactly one group
//	order-free  the order in which templates are given is irrelevant
//	sound       any two members of a group are similar
//	complete    two similar templates are in different groups only where one of them is chained, through similar ones, to
//	            another that is not similar to it
//	local       templates that no chain connects to a group have no influence on it
//	reference   the groups are those that comparing every pair gives
//	total       no input panics or runs for ever, be it malformed
//
// Three things bend them, each asked for: a template that lacks one of [Options.BalancingLabels] is similar to none, not
// to itself either; [Options.PoolLabels] join groups whatever their members look like; and estimated templates take part
// as [Completed] shows them.
//
// The package keeps no state, reads no clock and logs nothing.
package similar
