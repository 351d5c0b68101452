// SPDX-License-Identifier: Apache-2.0

// Package mcm runs machine-controller-manager's own MachineDeployment, MachineSet and safety
// controllers on a simulated API server, beside a double of the machine-controller. The controllers
// have a data race, so run them without -race.
package mcm
