// SPDX-License-Identifier: Apache-2.0

// Package virtual is a cloud whose machines are only Node objects: a driver for
// machine-controller-manager's machine controller, for local clusters, tests and the demo. A
// machine boots for the time that its MachineClass defines; then its Node registers and is Ready.
// From then on, kwok acts as its kubelet: it renews the Lease and runs the pods of Nodes with
// KwokAnnotation. docs/virtual-provider.md is the manual.
//
//	CreateMachine          boot over            DeleteMachine
//	     |                     |                     |
//	     v                     v                     v
//	  booting ------------> registered -----------> gone
//	     |     fault "dead"    |
//	     +-------> dead <------+
//
// It reads Machines (at registration), the ConfigMap of faults and its own records in the control
// cluster, and Nodes in the target cluster. It writes its own records and its own Nodes. It never
// writes a Machine or a MachineClass.
//
// Laws:
//
//  1. Every error is a status that MCM can decode, whatever its message contains.
//  2. A machine is created once per name, however often it is requested, even if an answer was
//     lost.
//  3. A machine is recorded before it is reported, and forgotten only after its Node is deleted.
//     Records survive the process; after a restart, boots continue as if there had been none.
//  4. CreateMachine never waits for a boot. One loop, Run, registers and updates Nodes. It carries
//     out NewPlan, and does nothing if there is nothing to do.
//  5. A Node registers with the taints that its Machine has at that moment, and tells MCM that they
//     came from the Machine, so that MCM removes them later. MCM adds the template's labels and
//     annotations.
//  6. A Node that does not belong to this cloud is never changed, whatever its name.
//  7. Faults affect only the machines that they name, and end when they are removed; only death is
//     permanent. Invalid faults are reported and change nothing.
package virtual
