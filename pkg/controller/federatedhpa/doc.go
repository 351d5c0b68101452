// SPDX-License-Identifier: Apache-2.0

// Package federatedhpa partitions the bounds of FederatedHorizontalPodAutoscalers over the
// autoscalers of many clusters.
//
//	object, ledger -+                 +-> ledger and status, then
//	registry -------+-> View -> plan.New -> orders -> one loop per cluster -> its autoscaler, its workload
//	caches ---------+                 +-> events
//
// Package plan decides. This package observes, writes the ledger and sends the orders.
//
// Watches: in the hub, the objects and the registry of clusters; in each cluster, all autoscalers
// and each kind that an object scales.
// Writes: status and finalizer of the objects, events; in clusters, the autoscaler with an object's
// name, and workloads that an object creates there.
// Never: the replicas of an existing workload, except of one without an autoscaler, if leavePolicy
// requires that; an autoscaler or workload that something else
// created; anything in a cluster that does not answer.
//
// Laws:
//
//  1. The maxima that the clusters really have, whatever the hub believes, and the replicas that
//     clusters which left still run, never add up to more than maxReplicas. After maxReplicas is lowered, the sum only falls until it fits. While a share is
//     lent, the status reports by how much the sum may exceed maxReplicas.
//  2. In every cluster, 1 <= max and min <= max.
//  3. A cluster's maximum is never lowered below what it runs, unless maxReplicas was lowered or
//     its replicas do not start.
//  4. An unreachable cluster is not changed, and its share is lent only if the object allows it.
//  5. If no cluster runs its whole maximum while another has more than it needs, and none is limited,
//     joins or leaves, nothing is written.
//  6. A raise never exceeds a preferred maximum.
//  7. A joining cluster gets a share as soon as one is available that no other cluster needs.
//  8. Once the minima add up to minReplicas, they still do while they move between clusters.
//  9. The same view gives the same plan, whatever the order of clusters.
//  10. Under constant load, the bounds stop changing.
//  11. A cluster that hangs delays no other cluster, except in the first 15 seconds of a process.
//  12. The memory that a cluster, an object or a Secret takes in the hub is limited, and is
//     released with it.
//  13. Nothing is written to a cluster before this hub has seen the version that any hub last
//     confirmed there.
//
// # Escrow
//
// An order that was sent to a cluster may take effect at any later time, or never. Therefore a
// cluster that gives counts with its old maximum until it confirms the lower one, and a raise
// counts before it is sent: it is entered into the ledger (the object's status), and that write
// must succeed first. Each write to a cluster has, as its precondition, the resourceVersion it was
// decided on, and the ledger keeps that version. Once the cluster shows a later version, the order
// has taken effect or never will. While it shows the same version, another write that changes
// something (the epoch) settles the matter.
//
// A cache may be older than the ledger: the cache of another hub, or of a hub that has just
// started. The ledger contains the version at which the confirmed bounds were first seen. Until the
// cache shows that version, the higher maximum counts, and the hub asks the cluster's API server.
// If the API server does not have the version either, the cluster was restored from a backup, and
// what it shows counts.
//
// The ledger may be old, too, if the hub's etcd was restored from a backup. Therefore nothing is
// raised before every cluster that answers has been read.
//
// A creation has no such precondition once the created object is removed again. Therefore, whatever
// may have been created twice is not removed before the longest time that a request can take.
package federatedhpa
