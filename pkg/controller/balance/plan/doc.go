// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the balance controller writes: how growth is split over similar
// MachineDeployments, which machine moves, the shares of a pool's excess, bounds, conditions and
// events. It decides from a View alone, which contains the MachineDeployments of a namespace, their
// machines and pods, the settings, the time, and what the last plan remembered. The package is
// pure: it reads and writes no object, has no clock, and returns the same plan for the same view.
// The package balance above it contains the laws that the tests cite.
package plan
