// SPDX-License-Identifier: Apache-2.0

// Package world contains what the storms of several controllers need around a [storm.World]:
// clients, builders of pools, and doubles of other components, which read everything that is stored
// and take the next steps.
package world
