// SPDX-License-Identifier: Apache-2.0

// Package additions contains what a Shoot with the extension has beside its
// machine-controller-manager: the rights that gardenlet does not grant, CapacityBuffers if they are
// enabled, and metrics, alerts and a dashboard for the Shoot's Prometheus and Plutono. The objects
// are values; apply.go writes them.
//
// Laws:
//
//  1. Nothing has a name that gardenlet or another extension uses.
//  2. Ensure writes only what differs, Remove leaves nothing in the seed.
//  3. Rights in the Shoot are only those that gardenlet does not grant, and let nobody write but the
//     status of pods and of CapacityBuffers.
//  4. The CRD of CapacityBuffers is created where the Shoot has none, and never changed or deleted.
//  5. Where CapacityBuffers are not wanted, the manager loses the right to create Reserves before
//     anything else is done.
package additions
