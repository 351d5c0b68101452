// SPDX-License-Identifier: Apache-2.0

// Package reserve decides which machines of a MachineDeployment serve, which wait in reserve, and which go first.
//
// [NewPlan] looks at a [View] and answers with a [Plan]. It is pure and total: no clock, no client, no memory, and the
// same answer in whatever order the machines are given. A machine's mark is the state; it moves only as the laws say.
//
// R is the number of machines that workload may have, X the excess wanted, A the excess applied: what
// machine-controller-manager (MCM) is being asked to run on top of R now. S machines serve, V are in reserve; both
// count live machines only, and S only such as are not sick.
//
//	               S < R, or S runs < R
//	          .---------------------------.         1 birth
//	          |   2 released, 3 swapped   |      .-----------
//	          v                           |      |
//	     +---------+                 +---------+ |
//	---->| serves  |                 | reserve |<'
//	  1  +---------+                 +---------+
//	      |   |   4 retired, swapped      ^  |
//	      |   '---------------------------'  | 6 shrunk, 10 cannot be made
//	      |     empty, and S > R             |   X falls: priority 2, seen, then A falls
//	      |                                  |
//	      |  5 surplus: S > R too long       v
//	      '----------------------------> victim -----> gone
//
// # Laws
//
// The tests cite them by number.
//
//  1. Birth. A machine serves from birth only if, with creates in flight counted, fewer than R machines
//     could serve; in doubt it is in reserve ([BornServing]).
//  2. Release. While fewer than R machines serve, reserve machines are released: ready ones first, then such as boot; of these
//     the current revision first, then the oldest. A sick machine (Unknown, Failed) does not count as serving, one
//     that boots does.
//  3. Swap. While fewer than R machines serve and run, ready reserve serves in place of serving machines that boot.
//  4. Retire. Only while more than R serve, and only a machine that holds no pod, is put into reserve; so a busy
//     machine never is. Never so many that a ready one would be released again, nor while MCM has deletions to do.
//  5. Surplus. Where more than R serve, none is empty and nothing leaves for as long as patience, those with the
//     fewest pods become victims and A falls by as many. It rises again when they are gone. A machine that holds a pod
//     that must not be evicted is never one of them: where all do, all stay. While many of the cluster's Nodes are not ready, nothing is drained and
//     patience does not run.
//  6. The gate. Victims of a smaller X are not ready first, then the newest. They get priority 2 and keep the mark. A falls
//     only as far as the lens' store shows that everything MCM would delete for it, in MCM's own order, is a victim, is leaving,
//     or could not be made. A machine that a MachineSet asks for and does not have yet counts as present. Nothing falls while that
//     store is behind, nor during a rollout, but for law 10.
//  7. What is preserved, or has a priority above 2 that is not ours, is no victim, and A does not fall below it.
//  8. Growth. A grows only while S <= R, without a rollout, and if all machines, those that leave included, stay within
//     max and fewer leave than MCM's freeze threshold forgives. Up to V it grows though S > R, since nothing is created for that
//     and MCM would take serving machines instead. X never passes max - R, and R above max is honoured.
//  9. Taking back. A victim is no victim any more only while the MachineSets, in the lens' store, and the lens itself
//     want as many machines as there are. Until then it keeps priority 2 and is not released.
//  10. What cannot be made. A falls by reserve machines that cannot be made or do not become ready in time, also during a
//     rollout, through the gate. It then waits, twice as long after every failure, and tries again with one machine; once that
//     is ready all of X is tried. Where A has fallen to 0 in a rollout, all reserve that is left are victims: none is born then, and
//     it must not be in the way of machines that serve.
//  11. Priorities: reserve that is ready 5, victims 2, everything else 3. Any other value is somebody else's and stays.
//  12. Named. Where a reserve machine is named for deletion while more than R serve and run, whoever named it lowered R
//     for it, and R is given back, once.
//  13. Which excess counts: the share of a pool, else the excess in bounds, else the field, else none. Percentages and
//     resources are rounded up to machines, and of several the largest counts ([Effective]).
//  14. Nothing is written to a machine that has no provider id yet, nor to one that leaves.
//  15. Blind. While Nodes and pods cannot be seen nothing is decided that rests on them: no machine moves, none gets a priority, patience
//     with a surplus does not run, and A falls only by what was never made. Machines are born, A grows, and R is given back as ever.
//  16. Counting. In inclusive accounting spec.replicas includes each reserve machine from when it has a Node, within max. So a machine
//     that is being made, or cannot be, is in nobody's number. What is included leaves again only with the excess: through the gate, by a
//     release, or where a reduction is settled. In additive accounting it includes none. To change the accounting is to count, and
//     changes nothing that MCM is shown.
//  17. A reduction of replicas that include reserve machines falls on workload as far as machines that serve are gone or named, and else on
//     the reserve, through the gate: R stays, and nothing is drained. Replicas are then the most that the reserve may reach: for a
//     minute, twice as long each time it happens again, and until a rollout has ended. Where all machines of a cluster are to go, the
//     reserve goes with them, without a gate.
//  18. Min. The reserve takes no machine from replicas that min asks for: one that it does not need serves.
//
// At rest S = R and V = X, or [Standing] says why not.
package reserve
