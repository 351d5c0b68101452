// SPDX-License-Identifier: Apache-2.0

// Package reserve decides which machines of a MachineDeployment serve, which wait in reserve, how
// many there are to be, and which go: [Decide] turns a [View] into a [Plan].
//
// R is the number of machines for workload, and X the excess. S machines are healthy and serve, and
// V are in reserve, without those that are leaving. At rest S = R and V = X, or [Summary] describes
// why not. docs/reserve-rule.md shows the states of a machine.
//
// Laws:
//
//  1. Creation. A new machine serves only if fewer than R others serve or could. Healthy reserve
//     machines could, unless they are dedicated or leaving.
//  2. Release. While S < R, reserve machines are released in the order of releaseOrder, ready ones
//     first; ready, uncordoned ones also replace serving machines that boot.
//  3. Named. If a client lowers R and names a reserve machine while more than R machines run and
//     serve, R is restored. R never included that machine.
//  4. Retire. An empty machine enters the reserve only while more than R serve, the reserve lacks
//     one, and no ready machine would be released again.
//  5. Surplus. If R falls, as many serving machines are cut; a surplus that outlasts patience is
//     drained, if pods, budgets and the cluster's health allow.
//  6. Shrink. If the reserve is too large, machines go in the order of shrinkOrder, except
//     protected ones and those where a pod runs or can come.
//  7. Unknown Nodes. While Nodes and pods cannot be read, machines are created, none moves, and
//     only those go that were never created or are cut. Machines without a provider id never move.
//  8. Max. X never exceeds max - R, R above max is honored, and except in rollouts all machines,
//     including leaving ones, stay within max. The reserve does not grow while S > R.
//  9. Counting. In inclusive accounting, spec.replicas includes reserve machines that have a Node,
//     within max; in additive accounting, it includes none. Reserve machines that only min requires
//     serve.
//  10. Failures. Reserve machines that cannot be created, or boot too long, are deleted; after a
//     pause that doubles each time, one is tried, then all.
//  11. Reduction. A reduction of replicas that include reserve machines falls on workload as far as
//     serving machines are gone or named, else on the reserve. Replicas then limit the reserve for
//     a time; see [Lowered].
//  12. Dedicated. Until it is claimed for a pod of its owner, a dedicated machine is not released
//     and does not count as one that could serve.
//  13. Excess. The excess is the share of a pool, else that of bounds, else the field, or what
//     Reserves request if that is more. See [Effective].
package reserve
