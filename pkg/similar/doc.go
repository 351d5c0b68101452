// SPDX-License-Identifier: Apache-2.0

// Package similar decides which MachineDeployments have machines that differ only in their zone.
//
// It compares [Template]s: what a fresh machine offers, read from a Ready Node ([Choose]) or
// estimated from the MachineClass ([FromClass]). docs/similar.md states when two are similar. That
// is not transitive: docs/decisions/0003-similar-groups.md explains how [Groups] cuts chains.
//
// Laws, whose exceptions are [Options.BalancingLabels], [Options.PoolLabels] and templates that are
// [Completed]:
//
//	reflexive   a template is similar to itself
//	symmetric   a is similar to b if and only if b is similar to a
//	partition   every template is in exactly one group
//	order-free  the order of the templates does not matter
//	sound       any two members of a group are similar
//	complete    two similar templates are in different groups only if a chain connects
//	            one of them to a template that is not similar to it
//	local       templates that no chain connects to a group do not affect it
//	reference   the groups are those that comparing every pair gives
//	total       no input causes a panic or an endless loop
package similar
