// SPDX-License-Identifier: Apache-2.0

// Package balancer distributes the replicas of each Balancer over its targets.
//
// Watches: Balancers, their pods and the Nodes of these, HorizontalPodAutoscalers, Machines, and
// each kind that a Balancer targets. Writes: the scale subresource of targets, the status of
// Balancers, events. Never: the replicas of a Balancer; a target in another namespace, of a kind
// that may not be scaled, or with another owner of its replicas.
//
// Laws:
//
//  1. Every target gets its minimum and at most its maximum. Replicas without a place are overflow,
//     and minimums beyond the total are deficit.
//  2. One more replica in total takes none from any target, as long as bounds are numbers.
//  3. A target with a problem keeps its replicas, and the others share the rest.
//  4. All raises of a sync come first; if one fails, nothing is reduced. Ready replicas never fall
//     below desired minus maxUnavailable.
//  5. Each write carries the resourceVersion it was decided on, and no decision uses a cache older
//     than the controller's own writes.
//  6. The same view gives the same plan, and at rest nothing is written.
//  7. The status has all history that decisions need, and shows that a target is blocked before
//     anything is scaled for it.
//  8. Only one Balancer scales a workload: the oldest valid one that need not yield to an older one
//     because of another target.
//  9. When a Balancer is deleted, its targets stay as they are.
//  10. If as many replicas of a blocked target run as failed to start, others run only the failed
//     ones.
//  11. Fallback does not remove a replica that may still run on a Node that is not ready.
package balancer
