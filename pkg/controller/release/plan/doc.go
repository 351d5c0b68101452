// SPDX-License-Identifier: Apache-2.0

// Package plan decides which machines of the reserve are released for waiting pods. [New] returns a
// [Plan] for a [View] of both clusters: by how much the replicas of MachineDeployments rise, and
// which pods are nominated. The package also has the rules that complete a view, such as which pods
// count, how many a Job has yet to create, and which machines are claimed already. It is pure: it
// uses no clock, client or logger. Package release states its laws.
package plan
