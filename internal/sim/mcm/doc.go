// SPDX-License-Identifier: Apache-2.0

// Package mcm brings machine-controller-manager to life on a simulated API
// server: its own MachineDeployment, MachineSet and safety controllers,
// unmodified, and beside them an actor that does what a machine-controller
// with its provider does to Machines and Nodes, in a few lines and at once.
//
// Both end with their context and leave no goroutine, which the controllers by
// themselves do not: see Dismantle.
//
// The controllers write into objects that other goroutines of theirs read
// (upstream's data race), so tests with them stay out of -race runs.
package mcm
