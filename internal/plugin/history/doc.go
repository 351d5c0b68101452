// SPDX-License-Identifier: Apache-2.0

// Package history finds out which pods were created when, from what a cluster or Prometheus still
// knows: a demand.Trace for package size.
//
//	pods, events of a cluster ----> Cluster
//	kube-state-metrics in Prometheus -> Prometheus.Trace
//
// Neither knows everything. Each source returns notes that say what is missing. What a source
// returns is bounded, whatever it claims.
package history
