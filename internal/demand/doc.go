// SPDX-License-Identifier: Apache-2.0

// Package demand describes which pods were created when, and how much room they needed. [ReadCSV]
// reads a [Trace] of at most [MaxPods].
package demand
