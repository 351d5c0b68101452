// SPDX-License-Identifier: Apache-2.0

// Package reserve decides which machines of a MachineDeployment serve, which are in reserve, and
// which are created or deleted: [Decide] turns a [View] into a [Plan].
//
// R is the number of machines for workload, and X the excess. S machines are healthy and serve, and
// V are in reserve. Leaving machines count in neither. At rest S = R and V = X, or [Summary]
// explains why not. docs/reserve-rule.md shows the states.
//
// Laws:
//
//  1. Creation. A new machine serves only if fewer than R others serve or are healthy and
//     undedicated in reserve.
//  2. Release. While S < R, reserve machines are released by releaseOrder, ready ones first. Ready,
//     uncordoned ones also replace serving machines that boot.
//  3. Named. If a client lowers R and names a reserve machine while more than R machines run and
//     serve, R is restored.
//  4. Retire. An empty machine enters the reserve only while S > R, the reserve lacks one, and no
//     ready machine would be released again.
//  5. Surplus. If R falls, as many serving machines are cut. A surplus that outlasts patience is
//     drained if pods, budgets and the cluster's health allow.
//  6. Shrink. If the reserve is too large, machines go by shrinkOrder, unless they are protected or
//     a pod runs or can come there.
//  7. Unknown Nodes. While Nodes and pods are unknown, machines are created, none moves, and only
//     uncreated or cut ones go. None moves without a provider id.
//  8. Max. X is at most max - R, and R above max is honored. Leaving machines count towards max,
//     except in rollouts. The reserve does not grow while S > R.
//  9. Counting. In inclusive accounting, spec.replicas includes reserve machines with a Node,
//     within max. Those that only min requires serve.
//  10. Failures. Reserve machines that cannot be created or boot too long are deleted. After a
//     growing pause, one is tried, then all.
//  11. Reduction. If replicas include the reserve, a reduction lowers R by serving machines that
//     are gone or named, and then limits the reserve.
//  12. Dedicated. Until it is claimed for a pod of its owner, a dedicated machine is not released
//     and does not count as one that could serve.
//  13. Excess. The excess is the share of a pool, else that of bounds, else the field. Reserves can
//     request more.
package reserve
