// SPDX-License-Identifier: Apache-2.0

// Package view shows machine-controller-manager's controllers a world without a reserve, in which it makes no
// mistakes, and lays what they write there over the world there is.
//
//	stored object --Show--> view --> informers, controllers
//	stored object <-Restore- view as changed by them, decided on that very version
//
// In a view a MachineDeployment has as many replicas as machines are wanted in all, and a Machine lacks what was added
// to hold it in reserve. MachineSets and MachineClasses are shown as they are: they hold the numbers and the template
// that the controllers themselves derive from the views.
//
// The laws; those in brackets are the design's.
//
//   - V1 (L1) Restoring what was shown changes nothing, whatever is stored: not a field, not the order of a list.
//   - V2 What is restored shows as it was written: Show(Restore(stored, view)) is view, for every change the controllers
//     may make. So they never find their own write missing, and never repeat it.
//   - V3 What a view does not have is kept: annotations of ours, fields that machine-controller-manager's types do not
//     know, at any depth, also in elements of lists that go on existing.
//   - V4 A Machine lacks exactly what its mark records as added, once. When the template comes to carry the same,
//     the mark gives it up in the same write: it is the template's from then on, and is shown. Where another has put a
//     taint of the same key and effect beside the added one, the mark gives that up with the next write, because a Node
//     cannot have both.
//   - V5 (L3) A MachineDeployment shows replicas (applied replicas where those are set and smaller) plus what of the applied excess these
//     do not include. That sum stops at the maximum recorded with the applied excess, but never below replicas. What cannot be
//     understood is none. A reduction of replicas that include reserve machines does not show as far as these absorb it.
//   - V6 A view is a function of one stored version, and of what V12 leaves out, and has its resourceVersion. A write decided on another version is a
//     conflict, also if only what is hidden has changed since.
//   - V7 (L5) Where nothing of ours is stored views are what is stored, and writes are those that
//     machine-controller-manager would make, the same verb at the same address, but that unknown fields survive.
//   - V8 A write that fails for a passing reason is repeated here, because machine-controller-manager writes
//     into its cache first and never again looks whether the write itself succeeded.
//   - V9 (L6) Whether a Machine is born in reserve is decided by Options.Born, one birth after another for each
//     MachineDeployment, each told of those that are under way.
//   - V10 A Machine or MachineSet is patched in its ownerReferences, labels and uid only, a MachineDeployment not at
//     all: a merge patch replaces lists whole, and with them what is hidden. Replicas of a MachineDeployment with excess are
//     not written: there is no telling whose replicas are meant.
//   - V11 No MachineSet shrinks, and no Machine is deleted, without Guards having been asked: what was decided for an
//     excess that has grown since is refused, as a conflict. A deletion may rest on a version of the Machine. Only an Update changes a MachineSet's replicas: it carries
//     what Guards decide on. A patch of them (V10) and a write of the scale subresource are refused.
//   - V12 The stored status of a MachineDeployment leaves out reserve machines that have not become ready, unless they leave or the
//     cluster hibernates: replicas, updatedReplicas, unavailableReplicas, failedMachines and the condition Available do not include
//     them. The view includes them. So nothing that waits for a MachineDeployment waits for its spares.
//   - V13 No Machine is created that Births call superfluous. Machine-controller-manager deletes machines that are named for deletion
//     before it lowers the replicas of their MachineSet, and would replace them.
package view
