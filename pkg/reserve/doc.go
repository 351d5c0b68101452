// SPDX-License-Identifier: Apache-2.0

// Package reserve decides which machines of a MachineDeployment serve, which wait in reserve, how many
// there are to be, and which go.
//
// [Decide] returns a [Plan] for a [View]. It is pure and total: it uses no clock, client or
// memory, and returns the same plan whatever the order of the machines. A machine's mark is its
// state; it changes only as the laws say.
//
// R is the number of machines for workload, X the desired excess, S machines serve, V are in reserve. S
// and V count only live machines, and S only healthy ones. Together with the reserve, there are to be R + X
// machines. What there is to be beyond R is recorded, so that it is known whether R has fallen.
//
//	               S < R, or S runs < R
//	          .---------------------------.         1 creation
//	          |   2 released, swapped     |      .-----------
//	          v                           |      |
//	     +---------+                 +---------+ |
//	---->| serves  |                 | reserve |<'
//	  1  +---------+                 +---------+
//	      |   |   4 retired, swapped      ^  |
//	      |   '---------------------------'  | 6 V > X, 10 cannot be created
//	      |     empty, and S > R, V < X      |   closed and empty
//	      |                                  |
//	      |  R falls                         v
//	      |  5 S > R too long: drained   .---------.
//	      '----------------------------->| deleted |
//	                                     '---------'
//
// # Laws
//
// Tests cite them by number.
//
//  1. Creation. A new machine serves from the start only if fewer than R machines could serve. In
//     reserve, machines could that are healthy, not dedicated, and do not go.
//  2. Release. While fewer than R machines serve, reserve machines are released: ready ones before
//     booting ones; within each, those whose Nodes may be open already first, then claimed ones, then
//     those whose Nodes are not cordoned, then those that no client wants deleted first, then the current
//     revision, then those whose Nodes have no taint but that of their template, then those on which
//     no pod runs, then those that can become ready in time, then the oldest. An unhealthy machine
//     (Unknown, Failed) does not count as serving; a booting one does. While fewer than R machines serve
//     and run, ready reserve machines serve in place of booting ones, unless their Nodes are cordoned.
//  3. Named. If a reserve machine is named for deletion while more than R serve and run, the client
//     that named it lowered R for it, and R is restored, also if the machine was already being deleted or
//     gone when it was named. A machine whose release has begun counts as one that runs: pods may have
//     been bound to it, though its mark stays.
//  4. Retire. A machine enters the reserve only while more than R serve and the reserve lacks one, and
//     only if no pod runs on it: a busy machine never does. Not so many are retired that a ready one would
//     be released again.
//  5. Surplus. If R falls, as many machines that serve are cut. If more than R serve for another reason,
//     none of them is empty and nothing is leaving, for as long as patience, then the machines with the
//     fewest pods are drained. A machine with a pod that must not be evicted now is never one of them, nor
//     more machines than budgets allow together: if none is left, all stay. While many Nodes of the
//     cluster are not ready, nothing is drained and patience does not run.
//  6. Shrink. Of a reserve that is too large, those go first that cannot be created, then those that a
//     client wants deleted first, then those that are not ready, then those whose Nodes are cordoned, then
//     the newest; none with pods, and none whose Node may be open. Preserved machines, and those with a
//     deletion priority above the default, never go. If all machines of a cluster are to be deleted, the
//     reserve goes with them. What is recorded falls once machines are seen leaving: if something prevents
//     a deletion, no machine that serves may seem to be too many.
//  7. Unknown Nodes. While Nodes and pods cannot be read, nothing is decided that depends on them: no
//     machine moves, patience with a surplus does not run, and only machines go that were never created,
//     and those that are cut. Machines are created, and R is restored as usual. Nothing is written to a
//     machine that has no provider id yet, or that is leaving.
//  8. Max. X never exceeds max - R, and R above max is honored. Except in a rollout, all machines,
//     including leaving ones, stay within max; workload that needs more waits only for machines of the
//     reserve to leave. The reserve does not grow while more than R serve.
//  9. Counting. In inclusive accounting, spec.replicas includes each reserve machine from when it
//     has a Node, within max and beside growth that is to be split over zones. A machine that is
//     being created, or cannot be, is in no number. What is included leaves again only with the
//     excess: when machines go, by a release, or when a reduction is settled. In additive
//     accounting, it includes none. A change of the accounting changes only these numbers. The reserve
//     takes no machine from the replicas that min requires: one that the reserve does not need serves.
//  10. What cannot be created. Reserve machines that cannot be created or do not become ready in time go,
//     but not those that are updated in place. The reserve is then no larger than what was left of it, for
//     a minute, twice as long after each failure, and tries again with one machine. When that one is
//     ready, all of X is tried.
//  11. A reduction of replicas that include reserve machines falls on workload as far as serving
//     machines are gone or named, and no other machine was created in their place. Otherwise it
//     falls on the reserve: R stays, and nothing is drained. An unhealthy machine is not gone. Replicas
//     are then the most that the reserve may reach: for a minute, twice as long each time it happens
//     again, and until a rollout has ended; or, if the client reduced them to a max of its own, until it
//     is asked for more.
//  12. Dedicated. A number of reserve machines can be kept for an owner. Such a machine keeps its
//     owner; others are dedicated if they are ready, and the oldest first ([Dedicate]). If its Node is
//     cordoned, another machine is dedicated in its place, if there is one. Until it is claimed for a
//     pod of its owner, a dedicated machine is not released, does not replace another, and does not
//     count as one that could serve. Claimed machines are released first.
//  13. Which excess counts: the share of a pool, else the excess in bounds, else the field, else
//     none; and what a Reserve requests, if that is more. Percentages and resources are rounded up
//     to machines; of several, the largest counts ([Effective]).
//
// At rest S = R and V = X, or [Summary] describes why not.
package reserve
