// SPDX-License-Identifier: Apache-2.0

// Package reserve decides which machines of a MachineDeployment serve, which wait in reserve, and
// which go first.
//
// [NewPlan] returns a [Plan] for a [View]. It is pure and total: it uses no clock, client or
// memory, and returns the same plan whatever the order of the machines. A machine's mark is its
// state; it changes only as the laws say.
//
// R is the number of machines for workload, X the desired excess, A the applied excess: the number
// of machines that machine-controller-manager (MCM) is asked to run on top of R now. S machines
// serve, V are in reserve. Both count only live machines, and S only healthy ones.
//
//	               S < R, or S runs < R
//	          .---------------------------.         1 creation
//	          |   2 released, 3 swapped   |      .-----------
//	          v                           |      |
//	     +---------+                 +---------+ |
//	---->| serves  |                 | reserve |<'
//	  1  +---------+                 +---------+
//	      |   |   4 retired, swapped      ^  |
//	      |   '---------------------------'  | 6 shrunk, 10 cannot be created
//	      |     empty, and S > R             |   X falls: priority 2, seen, then A falls
//	      |                                  |
//	      |  5 surplus: S > R too long       v
//	      '----------------------------> victim -----> deleted
//
// # Laws
//
// Tests cite them by number.
//
//  1. Creation. A new machine serves from the start only if fewer than R machines could serve,
//     counting creations in progress. In doubt, it is in reserve ([ServesOnCreation]).
//  2. Release. While fewer than R machines serve, reserve machines are released: ready ones before
//     booting ones; within each, those whose Nodes may be open already first, then claimed ones, then
//     those whose Nodes are not cordoned, then those not about to be deleted, then the current
//     revision, then those whose Nodes have no taint but that of their template, then those on which
//     no pod runs, then those that can become ready in time, then the oldest. An unhealthy machine
//     (Unknown, Failed) does not count as serving; a booting one does.
//  3. Swap. While fewer than R machines serve and run, ready reserve machines serve in place of
//     booting ones, unless their Nodes are cordoned.
//  4. Retire. A machine enters the reserve only while more than R serve, and only if no pod runs on
//     it: a busy machine never does. Not so many are retired that a ready one would be released
//     again, and none while MCM has deletions to do, or shows other machines than the view. One that
//     may have been retired, because the outcome of that write is unknown, does not count as serving
//     for this.
//  5. Surplus. If more than R machines serve, none of them is empty and nothing is leaving, for as
//     long as patience, then the machines with the fewest pods become victims and A falls by as
//     many. It rises again when they are gone. A machine with a pod that must not be evicted now is
//     never one of them, nor more machines than budgets allow together: if none is left, all stay.
//     While many Nodes of the cluster are not ready, nothing is drained and patience does not run.
//  6. The gate. Victims of a smaller X are those that are not ready first, then those whose Nodes
//     are cordoned, then the newest. They get priority 2 and keep the mark. A falls only as far as
//     the lens' store shows that every machine that MCM would delete for it, in MCM's own order, is a
//     victim, is leaving, or is in reserve and could not be created while no more than R serve: it may
//     be created a moment later, and a surplus would be deleted in its place. One that serves and
//     could not be created may get pods then. A victim that was created to serve counts once its Node
//     is seen, which may register without the taint, or if it cannot be created. One whose release had
//     begun counts once its Node is closed and its pods are seen. A machine that a MachineSet asks for
//     and does not have yet counts as present, unless max leaves no room for it.
//     Nothing falls while that store is behind, or during a rollout, except for law 10.
//     If a rollout begins before MCM has deleted what A has fallen by, a MachineSet has more
//     machines than MCM is shown in all: as many of its reserve machines are victims.
//  7. Preserved machines, and those with a priority above 2 that this rule did not set, are never
//     victims. A does not fall below their number.
//  8. Growth. A grows only while S <= R, without a rollout, and if all machines, including leaving
//     ones, stay within max and fewer are leaving than MCM's freeze threshold allows. Up to V, it
//     grows even if S > R, because nothing is created for that, and MCM would delete serving
//     machines instead. X never exceeds max - R, and R above max is honored.
//  9. Taking back. A victim stops being one only while the MachineSets in the lens' store, and the
//     lens itself, want as many machines as there are. Until then it keeps priority 2 and is not
//     released. One that serves already, while S <= R without a rollout, gets priority 3 at once: its
//     deletion is refused, and MCM has to choose another.
//  10. What cannot be created. A falls by reserve machines that cannot be created or do not become
//     ready in time, also during a rollout, through the gate; not by those that are updated in
//     place. It then waits, twice as long after each failure, and tries again with one machine. When
//     that one is ready, all of X is tried. If A has fallen to 0 in a rollout, the remaining reserve
//     machines are all victims: none is created then, and they must not delay machines that serve.
//  11. Priorities: ready reserve machines 5, victims 2, all others 3. The rule does not change
//     other values.
//  12. Named. If a reserve machine is named for deletion while more than R serve and run, the
//     client that named it lowered R for it, and R is restored, once, also if the machine is gone
//     by then, or was already gone when it was named. A machine whose release has begun counts as one
//     that runs: pods may have been bound to it, though its mark stays.
//  13. Which excess counts: the share of a pool, else the excess in bounds, else the field, else
//     none; and what a Reserve requests, if that is more. Percentages and resources are rounded up
//     to machines; of several, the largest counts ([Effective]).
//  14. Nothing is written to a machine that has no provider id yet, or that is leaving.
//  15. Unknown Nodes. While Nodes and pods cannot be read, nothing is decided that depends on them:
//     no machine moves, none gets a priority, patience with a surplus does not run, and A falls
//     only by machines that were never created. Machines are created, A grows, and R is restored as
//     usual.
//  16. Counting. In inclusive accounting, spec.replicas includes each reserve machine from when it
//     has a Node, within max and beside growth that is to be split over zones. A machine that is
//     being created, or cannot be, is in no number. What is included leaves again only with the
//     excess: through the gate, by a release, or when a reduction is settled. In additive
//     accounting, it includes none. A change of the accounting changes only these numbers, and
//     nothing that MCM is shown.
//  17. A reduction of replicas that include reserve machines falls on workload as far as serving
//     machines are gone or named, and no other machine was created in their place. Otherwise it
//     falls on the reserve, through the gate: R stays, and nothing is drained. An unhealthy machine
//     is not gone. Replicas are then the most that the reserve may reach: for a minute, twice as
//     long each time it happens again, and until a rollout has ended; or, if the client reduced them
//     to a max of its own, until it is asked for more. If all machines of a cluster are to be
//     deleted, the reserve is deleted with them, without a gate.
//  18. Min. The reserve takes no machine from the replicas that min requires: one that the reserve
//     does not need serves.
//  19. Dedicated. A number of reserve machines can be kept for an owner. Such a machine keeps its
//     owner; others are dedicated if they are ready, and the oldest first ([Dedicate]). If its Node is
//     cordoned, another machine is dedicated in its place, if there is one. Until it is claimed for a
//     pod of its owner, a dedicated machine is not released, does not replace another, and does not
//     count as one that could serve. Claimed machines are released first.
//
// At rest S = R and V = X, or [Summary] describes why not.
package reserve
