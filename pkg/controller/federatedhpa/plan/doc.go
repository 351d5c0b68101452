// SPDX-License-Identifier: Apache-2.0

// Package plan decides the bounds that each cluster gets from a FederatedHorizontalPodAutoscaler.
// It decides from a View: the object, whose status is the ledger, and what is known about each
// cluster. A Plan contains the clusters' goals, the orders to send now, and the writes of
// workloads. NewStatus returns the ledger and the status that must be written first. The package is
// pure: it reads no clock and calls no API, and the same view gives the same plan.
package plan
