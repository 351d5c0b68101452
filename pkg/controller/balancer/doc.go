// SPDX-License-Identifier: Apache-2.0

// Package balancer distributes the replicas of each Balancer over its targets.
//
//	Balancer -+
//	targets --+-> plan.View -> plan.New -> raises, then lowerings, by scale subresource
//	pods -----+                  -> status, events
//	Nodes ----+
//
// Watches: Balancers, their pods, the Nodes of these, HorizontalPodAutoscalers, and each kind that a
// Balancer targets and that may be scaled; Machines, if a target consists of machines.
// Writes: the scale subresource of targets, the status of Balancers, events.
// Never: the replicas of a Balancer itself; a target in another namespace, of a kind that may not
// be scaled, or with another owner of its replicas.
//
// Laws:
//
//  1. Every target gets its minimum, and no target gets more than its maximum. Replicas that no
//     target can take are reported as overflow; replicas that the minimums require beyond the total,
//     as deficit.
//  2. One more replica in total takes none from any target, as long as bounds are numbers.
//  3. A problem with a target affects only that target: its replicas stay, and the others share the
//     rest.
//  4. All raises of a sync are written before its reductions, and no reduction is written if a
//     raise failed. Wherever a sync is interrupted, we never reduce ready replicas below the
//     desired number less maxUnavailable.
//  5. Each write carries the resourceVersion that it was decided on, and nothing is decided on a
//     cache older than our own writes.
//  6. At rest, nothing is written: the same view gives the same plan, a plan that was carried out
//     leaves nothing to do, and the status is written only if it changes.
//  7. The Balancer's status contains all history that decisions depend on, so a restart loses
//     nothing. The status records that a target has become blocked or unblocked before targets are
//     scaled for that reason.
//  8. Only one Balancer scales a workload: the oldest one, unless it is invalid, or must itself stand
//     back for an older one because of another target. The others report this and write nothing.
//  9. When a Balancer is deleted, its targets stay as they are.
//  10. Of a blocked target of which at least as many replicas run as failed to start, others run only
//     the failed ones.
//  11. Fallback does not remove a replica that may still run although its Node is not ready.
package balancer
