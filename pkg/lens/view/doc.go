// SPDX-License-Identifier: Apache-2.0

// Package view shows machine-controller-manager's controllers objects without a reserve, and
// applies their writes to the stored objects.
//
//	stored object --Show--> view --> informers, controllers
//	stored object <-Restore- changed view, decided on that very version
//
// In a view, a MachineDeployment has as many replicas as there are to be machines in total, and a
// Machine does not have what was added to hold it in reserve. MachineSets and MachineClasses are
// shown unchanged: they contain the numbers and the template that the controllers themselves derive
// from the views.
//
// The laws; those in brackets are the design's.
//
//   - V1 (L1) Restoring what was shown changes nothing, whatever is stored: no field, and not the
//     order of a list.
//   - V2 What is restored shows as it was written: Show(Restore(stored, view)) is view, for every
//     change that the controllers may make. So they never find their own write missing, and never
//     repeat it.
//   - V3 What a view does not have is kept: our annotations, and fields that
//     machine-controller-manager's types do not have, at any depth, also in list elements that
//     remain.
//   - V4 The view of a Machine omits exactly what its mark records as added, once. When the
//     template comes to contain the same, the mark no longer records it after the same write: it
//     belongs to the template from then on, and is shown. If another client has added a taint of
//     the same key and effect beside the added one, the mark gives that up with the next write,
//     because a Node cannot have both.
//   - V5 (L3) A MachineDeployment shows replicas (applied replicas, if these are set and smaller)
//     plus the part of the applied excess that these do not include. That sum is at most the
//     maximum recorded with the applied excess, but at least replicas. Values that cannot be parsed
//     count as none. A reduction of replicas that include reserve machines does not show as far as
//     the reserve absorbs it.
//   - V6 A view is a function of one stored version, and of what V12 omits, and has its
//     resourceVersion. A write decided on another version is a conflict, even if only hidden fields
//     have changed since. The exception is an update that does nothing but unfreeze a MachineSet or
//     MachineDeployment: it unfreezes the object as it is now. machine-controller-manager tries that
//     once a minute, and until then creates no machines.
//   - V7 (L5) If nothing of ours is stored, views are what is stored, and writes are those that
//     machine-controller-manager would make, with the same verb at the same address, except that
//     unknown fields survive.
//   - V8 A write that fails for a temporary reason is repeated here, because
//     machine-controller-manager writes into its cache first and never checks whether the write
//     itself succeeded.
//   - V9 (L6) CreationOptions.ReserveMark decides whether a Machine is created in reserve, one
//     creation after another for each MachineDeployment, with the creations in progress as input.
//   - V10 A patch of a Machine or MachineSet changes only its ownerReferences, labels and uid, and
//     a MachineDeployment is not patched at all: a merge patch replaces whole lists, with what is
//     hidden in them. Replicas of a MachineDeployment with an excess are not written, because it is
//     unclear which replicas are meant.
//   - V11 No MachineSet is scaled down, and no Machine is deleted, without a call of Guards: what
//     was decided for an excess that has grown since is refused, as a conflict. A deletion may be
//     limited to a version of the Machine. Only an Update changes a MachineSet's replicas: it
//     contains what Guards decide on. A patch of them (V10) and a write of the scale subresource
//     are refused. Guards also decide when a MachineDeployment loses the name of a machine that is
//     to be deleted.
//   - V12 The stored status of a MachineDeployment omits reserve machines that have not become
//     ready, unless they are leaving or the cluster hibernates: replicas, updatedReplicas,
//     unavailableReplicas, failedMachines and the condition Available do not include them. The view
//     includes them. So nothing that waits for a MachineDeployment waits for its spares. If they are
//     leaving, failedMachines does not include them either. A number does not omit machines that
//     machine-controller-manager has yet to count.
//   - V13 No Machine is created if CreationOptions.Superfluous returns an error.
//     Machine-controller-manager deletes machines that are named for deletion before it lowers the
//     replicas of their MachineSet, and would replace them. That is no failure: the stored status of
//     the MachineDeployment does not report it as one.
package view
