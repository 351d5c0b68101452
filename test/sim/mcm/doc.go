// SPDX-License-Identifier: Apache-2.0

// Package mcm runs machine-controller-manager on a simulated API server: its own MachineDeployment,
// MachineSet and safety controllers, unmodified, and an actor that treats Machines and Nodes like a
// machine-controller with its provider, in a few lines and without delay.
//
// Both end with their context and leave no goroutine behind. The controllers alone would not: see
// Dismantle.
//
// The controllers write into objects that their other goroutines read (a data race upstream), so
// tests with them are not run with -race.
package mcm
