// SPDX-License-Identifier: Apache-2.0

// Package history finds out from a cluster or Prometheus which pods were created when: a
// demand.Trace for package size, bounded, with notes about what is missing.
package history
