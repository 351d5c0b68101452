// SPDX-License-Identifier: Apache-2.0

// Package nodegroup serves MachineDeployments with bounds as node groups to an unmodified
// cluster-autoscaler, by its external gRPC protocol. Package plan decides.
//
// Watches: the machine API in one namespace; Nodes of the target cluster. Writes: spec.replicas, by
// compare-and-swap, with the names of machines to delete and applied-replicas. The only write
// without a call repeats the deletion of a named machine that still exists after ten seconds.
// Never: a Machine or a Node; a MachineDeployment without bounds; spec.excessReplicas.
//
// Laws:
//
//  1. The target size is spec.replicas and the largest size is the max of the bounds; neither
//     includes the reserve.
//  2. A Node is in reserve if the request shows its mark, as in the caller's simulation, or
//     otherwise while its Machine is in reserve.
//  3. Instances are all machines outside the reserve, each once, by provider id, or by a
//     placeholder until their Node has registered.
//  4. A client reads its own write with the next call.
//  5. A call sends one patch, with the resourceVersion it was decided on, and reports an unknown
//     outcome instead of repeating the patch.
//  6. No call raises replicas above max, or lowers them below min.
//  7. Naming a leaving or missing machine changes nothing, naming a reserve machine lowers no
//     replicas, and a registered Node's placeholder is refused. Machines are read from the API
//     server first.
//  8. Requested machines that do not exist yet can be withdrawn, including unsplit growth; no
//     existing machine is deleted for this, however late the watches are.
//  9. Calls that only read are answered from memory.
//  10. A MachineDeployment with invalid bounds is not a group, and affects no other group.
//  11. When Run returns, no call or connection is open, and nothing is written afterwards.
//  12. A raise counts from the replicas when the caller's loop began, so it includes what others
//     have raised since.
//  13. A Node is found by its provider id; if its name is another machine's, a write is refused and
//     a read finds no group.
package nodegroup
