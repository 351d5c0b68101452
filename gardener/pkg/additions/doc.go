// SPDX-License-Identifier: Apache-2.0

// Package additions contains what a Shoot with the extension has beside its
// machine-controller-manager: rights, CapacityBuffers, metrics, alerts and a dashboard.
//
// Laws:
//
//  1. Nothing has a name that gardenlet or another extension uses.
//  2. Ensure writes only what differs, and Remove leaves nothing in the seed.
//  3. Rights in the Shoot are only those that gardenlet does not grant, and write only the status
//     of pods and CapacityBuffers.
//  4. The CRD of CapacityBuffers is created where the Shoot has none, and never changed or deleted.
//  5. If CapacityBuffers are disabled, the manager first loses the right to create Reserves.
package additions
