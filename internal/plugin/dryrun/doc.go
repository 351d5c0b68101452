// SPDX-License-Identifier: Apache-2.0

// Package dryrun predicts what the controllers will do, and the result. It writes nothing.
//
// It carries out the controllers' own plans in memory; docs/plugin.md lists what is modeled.
package dryrun
