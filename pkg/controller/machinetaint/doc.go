// SPDX-License-Identifier: Apache-2.0

// Package machinetaint keeps machines in reserve: it marks them and their Nodes, so that no pod is
// scheduled there, releases them when they are needed, and sets how many machines
// machine-controller-manager runs beyond replicas.
//
//	MachineDeployment -+
//	Machines, sets ----+-> plan.View -> plan.New -> Nodes, Machines,
//	Nodes, pods -------+     (reserve.NewPlan        the MachineDeployment's annotations and field,
//	what MCM has seen -'      inside)                status, events
//
// Watches: MachineDeployments, MachineSets, Machines and MachineClasses of the control cluster,
// each in a store of its own; Nodes and pods of the target cluster, whose PodDisruptionBudgets it
// reads while a machine may have to be drained; and the stores of machine-controller-manager's
// controllers in this process. Of these it reads only metadata, status and replicas, because those
// controllers write into the rest.
//
// Writes: the reserve mark and the deletion priority of Machines; the reserve mark of Nodes; of a
// MachineDeployment the annotations applied-excess, wanted-excess and returned, spec.excessReplicas
// if it shows a derived value or was removed, spec.replicas if these are restored or include the
// reserve, and the reserve's part of the status.
//
// Never: any field of a MachineDeployment without excess, past or present; a Machine that has no
// provider id yet, or is leaving; a priority of 1.
//
// Laws, in addition to those of package reserve:
//
//  1. A machine is in reserve if its Machine has the mark, unless workload runs on it: then it
//     serves, and loses its mark.
//  2. A Node has the whole mark exactly if its Machine does. The mark is written as a whole, at
//     once, and repaired when another client removes a part of it. On release, the Node is written
//     before its Machine, unless the machine may be being deleted: writing its Machine makes such a
//     deletion fail, and only then is its Node written. A Node is also closed before its Machine is
//     marked, and its pods are read once more in between.
//  3. What the template has by itself, or machine-controller-manager added for a rollout, is not
//     removed.
//  4. A field that its owner removes means 0, as an explicit 0 does. If another client drops it,
//     its last value is restored. The MachineDeployment records the owners.
//  5. If bounds or a share determine the excess, spec.excessReplicas shows the result. The
//     condition names a client that keeps writing the field, and the field is overwritten less and
//     less often. The field does not show what a Reserve requests.
//  6. Invalid settings leave the reserve as it is, and a condition describes what to write.
//  7. Each write contains the resourceVersion that it was decided on, and no decision is based on
//     versions older than our own writes. A Machine that is in reserve, or was, is deleted only at
//     the version that machine-controller-manager saw, and only while its MachineSet has more
//     machines than it asks for. A serving one is not deleted, unless more serve than replicas,
//     with those that are still to be restored, or a rollout replaces it: this applies while other
//     machines, of any MachineSet, are in reserve or leave it, and to each machine that was in
//     reserve. Both are refused if they were decided before the applied excess had its present
//     value, and no MachineSet grows by what was decided before the applied excess was reduced.
//     Except in rollouts, no Machine is created while there are as many as
//     machine-controller-manager is shown.
//  8. At rest, nothing is written.
//  9. A Machine is created in reserve only if an excess is applied. The record of that is restored
//     first if a client writes the object without it. Then the excess is reduced through the gate
//     of package reserve, or not at all. It is not reduced by machines on which pods run that the
//     cache of pods does not show yet.
//  10. While the target cluster does not respond, or its caches have yet to show what happened
//     meanwhile, nothing is decided that depends on its Nodes and pods: law 15 of package reserve.
//  11. An annotation of the Machine, and one event, show since when it is in reserve or when it
//     left, and whether its Node has the taint: see [v1alpha1.ReserveStateAnnotation].
//  12. A Node that has the provider id of another machine is not the Machine's, whatever its name:
//     see [pool.IsNodeOf].
package machinetaint
