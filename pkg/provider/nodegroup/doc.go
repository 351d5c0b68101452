// SPDX-License-Identifier: Apache-2.0

// Package nodegroup serves MachineDeployments with bounds as node groups to an unmodified
// cluster-autoscaler, by externalgrpc. Package plan decides.
//
// Watches: the machine API; Nodes of the target cluster. Writes: spec.replicas, by
// compare-and-swap, with the names of machines to delete and applied-replicas; without a call, only
// the deletion of a named machine that still exists after ten seconds. Never: a Machine or a Node;
// a MachineDeployment without bounds; spec.excessReplicas.
//
// Laws:
//
//  1. The target size is spec.replicas and the largest size is the max of the bounds, both without
//     the reserve.
//  2. A Node is in reserve if the request shows its mark, or while its Machine is in reserve.
//  3. Instances are all machines outside the reserve, each once, by provider id, or by a
//     placeholder until the Node registers.
//  4. A client reads its own write with the next call.
//  5. A call sends one patch, with the resourceVersion it was decided on, and reports an unknown
//     outcome instead of repeating it.
//  6. No call raises replicas above max, or lowers them below min.
//  7. Naming a leaving or missing machine changes nothing. Naming a reserve machine lowers no
//     replicas. A registered Node's placeholder is refused.
//  8. Requested machines that do not exist yet can be withdrawn, and no existing machine is deleted
//     for this.
//  9. Calls that only read are answered from memory.
//  10. A MachineDeployment with invalid bounds is not a group, and affects no other group.
//  11. When Run returns, no call or connection is open, and nothing is written afterwards.
//  12. A raise counts from the replicas when the caller's loop began, and includes what others have
//     raised since.
//  13. A Node is found by its provider id. If its name is another machine's, writes are refused and
//     reads find no group.
package nodegroup
