// SPDX-License-Identifier: Apache-2.0

// Package plan decides how many machines to request of each MachineDeployment for the chunks of
// CapacityBuffers, and what the status of each buffer says. It decides from a View, which contains
// all objects that matter at one instant, and returns a Plan. It is pure: it has no client, no
// context, no logger and no clock. Package capacitybuffer collects the View, carries out the Plan, and
// lists the laws.
package plan
