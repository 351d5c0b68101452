// SPDX-License-Identifier: Apache-2.0

// Package machinetaint keeps the reserve of each MachineDeployment: it marks the Machines that wait and their Nodes,
// frees them when they are needed, and tells machine-controller-manager how many machines to run beyond replicas.
//
//	MachineDeployment -+
//	Machines, sets ----+-> View -> NewPlan -> Nodes, Machines, the MachineDeployment's annotations and field
//	Nodes, pods -------+      (reserve.NewPlan inside)   -> status, events
//	what MCM has seen -'
//
// Watches: MachineDeployments, MachineSets, Machines and MachineClasses of the control cluster, each in a store of its own; Nodes and pods of
// the target cluster; and the stores of machine-controller-manager's controllers in this process, of which only
// metadata, status and replicas are read, since those controllers write into the rest.
//
// Writes: the reserve mark and the deletion priority of Machines; the reserve mark of Nodes; of a MachineDeployment the annotations applied-excess, wanted-excess and
// returned, spec.excessReplicas where it shows what was derived or was wiped, spec.replicas where it is given back
// or includes the reserve, and the reserve's part of the status.
//
// Never: anything of a MachineDeployment without excess, past or present; a Machine that has no provider id yet, or that
// leaves; a priority of 1.
//
// Laws, beside those of package reserve:
//
//  1. The reserve is where the mark of the Machine is, but for a machine that workload runs on: that serves, and loses its mark.
//  2. A Node carries the whole mark exactly if its Machine does. It is written in one piece, at once, and mended when
//     somebody takes a part of it away. A Node is freed before its Machine, but for a machine that may be being deleted: writing its Machine
//     makes such a deletion fail, and only then its Node is freed. A Node is also closed before its Machine, and its pods are read once
//     more in between.
//  3. What the template has by itself, or machine-controller-manager put there for a rollout, is not taken away.
//  4. A field that its owner removes means 0, as an explicit 0 does. One that anybody else drops is restored to what it
//     said last. Who owned it is remembered in the MachineDeployment.
//  5. Where bounds or a share count, spec.excessReplicas shows what they come to. Who keeps writing it is named by the
//     condition, and written over ever more rarely.
//  6. What cannot be understood leaves the reserve as it is, and a condition says what to write.
//  7. Each write carries the resourceVersion it was decided on, and nothing is decided on what is older than our own
//     writes. A Machine that is in reserve, or was, is deleted only at the version that machine-controller-manager saw, and only while
//     its MachineSet has more machines than it wants. One that serves is not, unless more serve than replicas or a rollout replaces it:
//     that holds while others are in reserve or leave it, in whichever MachineSet, and for each machine that was in reserve.
//     Neither happens for what was decided before the excess applied was what it is, and
//     no MachineSet grows by what was decided before it fell. Apart from rollouts, no Machine is created while there are as many as
//     machine-controller-manager is shown.
//  8. At rest nothing is written.
//  9. A Machine is born in reserve only where excess is applied. The record of that is restored where somebody writes the object without
//     it: the excess falls through the gate of package reserve or not at all.
//  10. While the target cluster does not answer, or has yet to show what happened meanwhile, nothing is decided on its Nodes and
//     pods: law 15 of package reserve.
//  11. A Machine says, in an annotation and once in an event, since when it is in reserve or when it left, and whether its Node
//     carries the taint: see [v1alpha1.ReserveStateAnnotation].
//  12. A Node that has the provider id of another machine is not the Machine's, whatever its name: see [signs.IsNodeOf].
package machinetaint
