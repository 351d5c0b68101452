// SPDX-License-Identifier: Apache-2.0

// Package history finds out which pods were created when, from what a cluster or Prometheus still
// knows: a demand.Trace for package size, bounded, with notes about what is missing.
package history
