// SPDX-License-Identifier: Apache-2.0

// Package balancer distributes the replicas of each Balancer over its targets.
//
//	Balancer -+
//	targets --+-> View -> NewPlan -> raises, then lowerings, by scale subresource
//	pods -----+                  -> status, events
//
// Watches: Balancers, their pods, HorizontalPodAutoscalers, and each kind that a Balancer has as a target and that it is
// allowed to scale; Machines where a target is made of machines.
// Writes: the scale subresource of targets, the status of Balancers, events.
// Never: the replicas of a Balancer itself; a target in another namespace, of a kind that is not allowed, or whose
// replicas have another owner.
//
// Laws:
//
//  1. Every target gets its minimum and no target more than its maximum; what nobody can take is reported as overflow,
//     what the minimums ask for beyond the total as deficit.
//  2. One more replica in total takes none from any target, as long as bounds are numbers.
//  3. What is wrong with a target concerns that target: it is left as it is and the others share the rest.
//  4. All raises of a sync are written before its lowerings, and no lowering if a raise failed. So wherever it is cut
//     off, ready replicas never fall below what is wanted, less maxUnavailable, by our doing.
//  5. Each write carries the resourceVersion it was decided on, and nothing is decided on a cache older than our own
//     writes.
//  6. At rest nothing is written: the same view gives the same plan, a plan carried out leaves nothing to do, and status
//     is written only if it changes.
//  7. What a target's history counts for is in the Balancer's status: a restart forgets nothing. That a target is blocked, or no longer
//     is, is written there before anything is asked of targets because of it.
//  8. A workload is scaled by one Balancer: the oldest that need not stand back for an older one elsewhere. The others
//     say so and write nothing.
//  9. A deleted Balancer leaves its targets as they are.
package balancer
