// SPDX-License-Identifier: Apache-2.0

// Package plan decides how many replicas each target of a Balancer gets, which targets are blocked,
// and what the status reports. It decides from a [View] of plain values: the time, the Balancer,
// its targets and their replicas. Its only memory is the status of the Balancer. The package is
// pure: it has no clock and no client, it writes nothing, and the same View gives the same [Plan].
//
// The laws are in the package comment of the controller.
package plan
