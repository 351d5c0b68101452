// SPDX-License-Identifier: Apache-2.0

// Package reserves spreads the machines that Reserves request over MachineDeployments, by an
// annotation of these.
//
// Watches: the machine API and Reserves; Nodes of the target cluster. Writes: the annotations
// requested-excess and dedicated of MachineDeployments; status and events of Reserves. Never:
// anything else of a MachineDeployment; the spec of a Reserve; a Machine, a Node or a pod.
//
// Laws:
//
//  1. A Reserve requests the largest of replicas, amount and active schedules. Percentages are of
//     all replicas, and resources count by its smallest machines.
//  2. Its machines are spread evenly over its MachineDeployments, within each max, and stay while
//     that is as even.
//  3. Of several requests for a MachineDeployment, the largest counts. Names decide ties.
//  4. While a MachineDeployment cannot create machines, others take over, and it keeps trying one.
//     Ready machines stay until replaced.
//  5. An invalid Reserve requests as many machines as before, unless it is suspended.
//  6. A MachineDeployment without a request has no annotation.
//  7. Each sync decides from the objects and the time only.
//  8. A MachineDeployment gets no request while its reserve is drained, its cluster hibernates, or
//     Gardener's max is unknown.
//  9. At rest, nothing is written, unless a schedule begins or ends.
//  10. A Reserve affects another only by a larger request.
//  11. A Reserve of one MachineDeployment can dedicate its machines to owners.
package reserves
