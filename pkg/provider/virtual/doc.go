// SPDX-License-Identifier: Apache-2.0

// Package virtual is a cloud whose machines are only Node objects: a driver for machine-controller-manager's machine
// controller, for local clusters, tests and the demo. A machine boots for as long as its MachineClass says, then its
// Node registers, Ready; from then on kwok stands in for its kubelet (it renews the Lease and runs the pods of nodes
// that carry KwokAnnotation). docs/virtual-provider.md is the manual.
//
//	CreateMachine          boot over            DeleteMachine
//	     |                     |                     |
//	     v                     v                     v
//	  booting ------------> registered -----------> gone
//	     |     fault "dead"    |
//	     +-------> dead <------+
//
// Reads Machines (at registration), the ConfigMap of faults and its own records in the control cluster, Nodes in the
// target cluster. Writes its own records, and its own Nodes. Never writes a Machine or a MachineClass.
//
// Laws:
//
//  1. Every error is a status of MCM's machine codes that MCM can decode, whatever its message holds.
//  2. A machine is made once per name, however often it is asked for, also when an answer got lost.
//  3. A machine is recorded before it is reported and forgotten only after its Node is deleted. Records survive the
//     process; boots go on after a restart as if there had been none.
//  4. CreateMachine never waits for a boot. One loop, Run, registers Nodes and changes their faces; what it does is
//     NewPlan of what it sees, and it does nothing when nothing is to be done.
//  5. A Node registers with the taints that its Machine asks for at that moment, and tells MCM that they came from the
//     Machine, so that MCM takes them away again. Labels and annotations of the template are MCM's to add.
//  6. A Node that is not ours is never touched, whatever its name.
//  7. Faults do nothing to a machine they do not name, and end when they are taken out; only death is for good.
//     Faults that cannot be read are reported and change nothing.
package virtual
