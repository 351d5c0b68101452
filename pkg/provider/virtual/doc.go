// SPDX-License-Identifier: Apache-2.0

// Package virtual is a cloud whose machines are only Node objects: a driver for
// machine-controller-manager's machine controller. docs/virtual-provider.md is the manual.
//
// Reads: Machines and the ConfigMap of faults in the control cluster, and Nodes in the target
// cluster. Writes: its own records and its own Nodes. Never: a Machine or a MachineClass.
//
// Laws:
//
//  1. Every error is a status that MCM can decode.
//  2. A machine is created once per name, however often it is requested.
//  3. A machine is recorded before it is reported and until its Node is deleted. Boots continue
//     after a restart.
//  4. CreateMachine never waits for a boot: one loop, Run, carries out NewPlan.
//  5. A Node registers with its Machine's taints, and tells MCM where they come from, so that MCM
//     removes them later.
//  6. A Node that does not belong to this cloud is never changed.
//  7. Faults affect only machines that they name, and all but death end when removed. Invalid ones
//     change nothing.
package virtual
