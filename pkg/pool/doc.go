// SPDX-License-Identifier: Apache-2.0

// Package pool reads a MachineDeployment: how many machines workload may have, and whether a rollout replaces them.
//
// The lens, the controllers, the node groups and the plugin all ask here, so that they agree. It is pure: a function of
// the objects given, without a client or a clock.
package pool
