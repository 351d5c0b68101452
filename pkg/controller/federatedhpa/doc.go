// SPDX-License-Identifier: Apache-2.0

// Package federatedhpa partitions the bounds of FederatedHorizontalPodAutoscalers over the autoscalers of many clusters.
//
//	object, ledger -+                 +-> ledger and status, then
//	registry -------+-> View -> NewPlan -> orders -> one loop per cluster -> its autoscaler, its workload
//	caches ---------+                 +-> events
//
// Watches: the objects, and the registry of clusters, in the hub; in each cluster all autoscalers, and each kind that an
// object scales.
// Writes: status and finalizer of the objects, events; in clusters the autoscaler of an object's name, and workloads that
// an object brings along.
// Never: the replicas of a workload that exists; an autoscaler or workload of somebody else; anything in a cluster that
// does not answer.
//
// Laws:
//
//  1. The maxima in the clusters, as they are there and not as the hub believes, never add up to more than maxReplicas.
//     While a lowered maxReplicas is being taken back the sum only falls; while a share is lent the status says by how much
//     it may be exceeded.
//  2. Everywhere 1 <= max and min <= max.
//  3. A cluster's maximum is never lowered below what it runs, but where maxReplicas was lowered, or where it does not get
//     its replicas started.
//  4. A cluster out of reach is not touched, and its share is not lent unless the object says so.
//  5. If no cluster is limited, joins or leaves, nothing is written.
//  6. A preferred maximum is never exceeded by a raise.
//  7. A joining cluster gets a share as soon as there is one that no other cluster needs.
//  8. Once the minima add up to minReplicas they go on doing so while they move between clusters.
//  9. The same view gives the same plan, whatever the order of clusters.
//  10. Under constant load the bounds come to rest.
//  11. A cluster that hangs delays no other, but for the first 15 seconds of a process.
//  12. What a cluster, an object or a Secret makes the hub hold has a bound, and goes with it.
//  13. A cluster is not written to before the version that was last confirmed of it is seen, by whichever hub confirmed it.
//
// # Escrow
//
// What was sent to a cluster may arrive at any later time, or never. So a donor counts with its old maximum until its
// cluster confirms the lower one, and a raise counts from before it is sent: it is entered into the ledger, which is the
// object's status, and that write must succeed first. Each write to a cluster has the resourceVersion it was decided on as
// its precondition, which the ledger keeps: as soon as the cluster shows a later one, what was sent has arrived or never
// will. If it shows the same one, another write that changes something (the epoch) brings it on.
//
// A cache may be older than the ledger: of another hub, or of one that has just begun. The ledger has the version at which the
// confirmed bounds were first seen. A cache that does not show it counts the higher maximum, and the cluster's API server is
// asked. If that does not have the version either, the cluster was restored from a backup, and what it has counts.
//
// A ledger may be old, too: where the hub's etcd was restored from a backup. So nothing is raised before every cluster that answers
// has been read.
//
// A creation has no such precondition once what it made is removed again. So what may have been created twice is not
// removed before the longest time that a request can take.
package federatedhpa
