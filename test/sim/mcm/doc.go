// SPDX-License-Identifier: Apache-2.0

// Package mcm runs machine-controller-manager's own MachineDeployment, MachineSet and safety
// controllers on a simulated API server, and an actor that plays the machine-controller. The
// controllers have a data race, so tests with them run without -race.
package mcm
