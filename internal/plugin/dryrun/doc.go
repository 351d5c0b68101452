// SPDX-License-Identifier: Apache-2.0

// Package dryrun predicts what the controllers will do, and the result, by their own plans in
// memory. It writes nothing. docs/plugin.md lists what is modeled.
package dryrun
