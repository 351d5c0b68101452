// SPDX-License-Identifier: Apache-2.0

// Package federatedhpa partitions the bounds of FederatedHorizontalPodAutoscalers over the
// autoscalers of many clusters. Package plan decides; this one writes the ledger, which is the
// object's status, and sends orders in one loop per cluster.
// docs/decisions/0010-federated-escrow.md explains when an order counts.
//
// Watches: in the hub, the objects and the registry of clusters; in each cluster, autoscalers and
// the kinds that are scaled. Writes: the objects' status and finalizer, events; in clusters,
// autoscalers with an object's name, and workloads that it creates. Never: replicas of an existing
// workload with an autoscaler; what something else created; a cluster that does not answer.
//
// Laws:
//
//  1. Except for lent shares, maxima in clusters plus replicas in clusters that left never exceed
//     maxReplicas. Once maxReplicas falls, the sum only falls.
//  2. In every cluster, 1 <= max and min <= max.
//  3. A maximum is never lowered below what its cluster runs, unless maxReplicas was lowered or
//     replicas fail to start.
//  4. An unreachable cluster is not changed, and its share is lent only if the object allows it.
//  5. Nothing is written unless a cluster is limited, joins, leaves, or runs its whole maximum
//     while another has more than it needs.
//  6. A raise never exceeds a preferred maximum.
//  7. A joining cluster gets a share as soon as no other needs it.
//  8. Once minima add up to minReplicas, they still do while they move between clusters.
//  9. The same view gives the same plan, whatever the order of clusters.
//  10. Under constant load, the bounds stop changing.
//  11. A cluster that hangs delays no other, except in the first 15 seconds of a process.
//  12. The memory that a cluster, object or Secret takes is limited, and is released with it.
//  13. Nothing is written to a cluster until this hub has seen the version that any hub last
//     confirmed there.
package federatedhpa
