// SPDX-License-Identifier: Apache-2.0

// Package demand describes which pods were created when, and how much room they needed.
//
// [ReadCSV] reads a [Trace] from a file; package synthetic makes weeks for tests and measurements. A
// trace is bounded by [MaxPods], whatever its source.
package demand
